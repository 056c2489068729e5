import { describe, expect, test } from 'vitest';
import { actorsOf } from '../../src/diagnose/actors.ts';
import { admissionResult } from '../../src/diagnose/admission/refusals.ts';
import { contextOf } from '../../src/diagnose/context.ts';
import { diagnose } from '../../src/diagnose/diagnose.ts';
import { classifyErrorText, isAdmissionError } from '../../src/diagnose/error-texts.ts';
import { heldObjects } from '../../src/diagnose/owner/finalizers.ts';
import type { Held } from '../../src/diagnose/owner/held.ts';
import { removalRemedies } from '../../src/diagnose/owner/remedies.ts';
import { policyBindingFacts, policyFacts, webhookFacts } from '../../src/model/facts/admission.ts';
import type { Finding, Remedy } from '../../src/model/finding.ts';
import { readOk } from '../../src/model/read.ts';
import type { PodFacts, Snapshot } from '../../src/model/snapshot.ts';
import { isOpenOnly } from '../../src/report/situations.ts';
import { readRecordedLook, readRecordedLooks } from './recorded-looks.ts';

/** What a report advises about a recorded hang that differs in one thing. */

function rootOf(scenario: string, change: (now: Snapshot) => void): Finding {
  const { before, now } = readRecordedLook(scenario);
  change(now);
  const { findings, rootCauses } = diagnose(now, before);
  return findings.find(({ id }) => id === rootCauses[0]) as Finding;
}

const crowd = (count: number, others: number) => (now: Snapshot) => {
  const [first] = now.pods.ok ? (now.pods.value as [PodFacts]) : [];
  if (first === undefined) throw new Error('no pod');
  const named = (name: string) => ({ ...structuredClone(first), name, uid: name });
  const overdue = Array.from({ length: count }, (_, index) => named(`web-${index}`));
  const alive = { deletionTimestamp: undefined };
  const rest = Array.from({ length: others }, (_, index) => ({
    ...named(`new-${index}`),
    ...alive,
  }));
  now.pods = readOk([...overdue, ...rest] as PodFacts[]);
};

test.each<[string, number, number, RegExp]>([
  ['a few', 2, 0, /^kubectl delete pod web-0 web-1 -n \S+ --grace-period=0 --force$/],
  ['many of a node', 30, 1, /^kubectl delete pod web-0 (?:web-\d+ ){28}web-29 -n /],
])('the command for pods, %s, reaches each of them and no other', (_, count, others, command) => {
  const { remedies } = rootOf('SEED-5a', crowd(count, others));
  expect(remedies.flatMap((one) => one.command ?? [])).toContainEqual(
    expect.stringMatching(command),
  );
});

test('a grace period of a week is shortened, not waited for', () => {
  const week = 7 * 24 * 3_600;
  const { code, remedies } = rootOf('S30', (now) => {
    const until = new Date(Date.parse(now.takenAt) + 1_000 * week).toISOString();
    for (const pod of now.pods.ok ? now.pods.value : []) {
      Object.assign(pod, { deletionGracePeriodSeconds: week, deletionTimestamp: until });
    }
  });
  expect(code).toBe('pod-grace-period');
  expect(JSON.stringify(remedies)).not.toContain('timeout');
  expect(remedies.find(({ role }) => role === 'now')?.command).toMatch(
    /^kubectl delete pod \S+ .*--grace-period=1/,
  );
});

const changer = (name: string, operations = ['*']) =>
  webhookFacts('MutatingWebhookConfiguration')({
    metadata: { name, uid: name },
    webhooks: [
      {
        name: `${name}.example.com`,
        clientConfig: { url: 'https://example.com' },
        rules: [
          { operations: ['*'], apiGroups: ['apps'], apiVersions: ['*'], resources: ['*'] },
          { operations, apiGroups: ['*'], apiVersions: ['*'], resources: ['*'] },
        ],
      },
    ],
  });

const POLICY = policyFacts('MutatingAdmissionPolicy')({
  metadata: { name: 'sizes' },
  spec: {
    matchConstraints: {
      resourceRules: [
        {
          operations: ['CREATE', 'UPDATE'],
          apiGroups: ['*'],
          apiVersions: ['*'],
          resources: ['*'],
        },
      ],
    },
  },
});
const BINDING = policyBindingFacts({
  metadata: { name: 'sizes-here' },
  spec: { policyName: 'sizes' },
});

const IMMUTABLE =
  'Widget.example.com "db" is invalid: spec.size: Invalid value: 3: field is immutable';
const POD = `Pod "migrate-x6qrj" is invalid: spec: Forbidden: pod updates may not change fields other than \`spec.containers[*].image\``;
const DENIED = 'admission webhook "guard.example.com" denied the request: label team is required';

/** The gate itself may not try the update. */
const untried = (now: Snapshot): void => {
  for (const trial of Object.values(now.trials)) {
    Object.assign(trial, { answer: 'unknown', message: 'widgets is forbidden' });
  }
};
const SAID: Record<string, (now: Snapshot, text: string) => void> = {
  'its dry run': (now, message) => {
    for (const trial of Object.values(now.trials)) {
      Object.assign(trial, { answer: 'refused', message });
    }
  },
  'the status': (now, message) => {
    untried(now);
    for (const read of Object.values(now.details)) {
      const lastTransitionTime = now.takenAt;
      const condition = { type: 'Ready', status: 'False', reason: 'Failed', message };
      if (read.ok) read.value.conditions.push({ ...condition, lastTransitionTime });
    }
  },
  'an Event': (now, message) => {
    untried(now);
    const [object] = now.content.flatMap(({ read }) =>
      read.ok ? read.value.terminating.flatMap(({ examples }) => examples) : [],
    );
    const place = now.places[now.namespace.name];
    if (!place?.events?.ok || object === undefined) throw new Error('no object');
    const event = { type: 'Warning', reason: 'FailedUpdate', message, regarding: object };
    place.events.value.push({ ...event, component: 'x', instance: '', at: now.takenAt });
  },
};

function obstacles(scenario: string, source: string, text: string, ...names: string[]): Finding[] {
  const { before, now } = readRecordedLook(scenario);
  const isPolicy = names.includes('sizes');
  now.cluster.mutatingPolicies = readOk(isPolicy ? [POLICY] : []);
  now.cluster.mutatingPolicyBindings = readOk(isPolicy ? [BINDING] : []);
  now.cluster.mutatingWebhooks = readOk(
    names.filter((name) => name !== 'sizes').flatMap((name) => changer(name)),
  );
  SAID[source]?.(now, text);
  const { findings, rootCauses } = diagnose(now, before);
  const roots = findings.filter(({ id }) => rootCauses.includes(id));
  return roots.toSorted((a, b) => (a.subject.name < b.subject.name ? -1 : 1));
}

test.each<[string, string, string, string[], string]>([
  ['put-back', 'its dry run', IMMUTABLE, ['sidecar'], 'likely'],
  ['put-back', 'its dry run', IMMUTABLE, ['mesh', 'sidecar'], 'unknown'],
  ['put-back', 'the status', IMMUTABLE, ['sidecar'], 'likely'],
  ['put-back', 'the status', IMMUTABLE, ['sizes'], 'likely'],
  ['put-back', 'an Event', IMMUTABLE, ['mesh', 'sidecar', 'sizes'], 'unknown'],
  ['S22', 'its dry run', POD, ['sidecar'], 'likely'],
  ['S22', 'an Event', POD, ['sidecar'], 'likely'],
])('%s: a refused change that the removal does not make, in %s (%s), is of %j', (...row) => {
  const [scenario, source, text, names, certainty] = row;
  const roots = obstacles(scenario, source, text, ...names);
  expect(roots.map(({ subject }) => subject.name)).toEqual(names);
  for (const { code, certainty: own, message, remedies } of roots) {
    expect({ code, certainty: own }).toEqual({ code: 'admission-denied', certainty });
    expect(message).toMatch(/^(?:most likely|may be what) changes a field at every update/);
    expect(remedies[0]?.text).toMatch(/^Limit (?:webhook \S+ of \S+ \S+|policy sizes) to CREATE$/);
    expect(remedies[0]?.command).toMatch(
      /"path":"\/(?:webhooks\/0\/rules\/1|spec\/matchConstraints\/resourceRules\/0)\/operations","value":\["CREATE"\]/,
    );
    // The rules about other types stay.
    expect(remedies[0]?.command).not.toContain('/rules/0/');
  }
});

test('a refused change of which no read webhook or policy can be the cause is searched', () => {
  for (const scenario of ['put-back', 'S22']) {
    const text = scenario === 'S22' ? POD : IMMUTABLE;
    const [root] = obstacles(scenario, 'an Event', text);
    expect(root?.remedies[0]?.text).toMatch(/^Find the mutating webhook or policy that changes/);
    expect(JSON.stringify(root?.remedies)).not.toContain('valid, or let its type accept');
  }
});

test('a refused change of another object is no fault of a mutating webhook', () => {
  const text =
    'Job.batch "drop-db" is invalid: spec.template: Invalid value: {}: field is immutable';
  const roots = obstacles('put-back', 'the status', text, 'sidecar');
  expect(roots.map(({ code }) => code)).not.toContain('admission-denied');
  expect(JSON.stringify(roots)).not.toContain('Find the mutating webhook');
});

test('an object that is invalid itself is no fault of a mutating webhook', () => {
  const text = 'Widget.example.com "db" is invalid: spec.size: Required value';
  const roots = obstacles('put-back', 'its dry run', text, 'sidecar');
  expect(roots.map(({ code }) => code)).not.toContain('admission-denied');
  expect(roots[0]?.remedies[0]?.text).toMatch(/^Make \w+ \S+ valid, or let its type accept it/);
});

test('a refusal that only an Event reports ends the chain behind kube-controller-manager', () => {
  const [root] = obstacles('S22', 'an Event', `error removing finalizer: ${DENIED}`);
  expect(root).toMatchObject({ code: 'admission-denied', subject: { name: 'guard' } });
});

test('a forecast leaves a question open if nothing but the deletion can answer it', () => {
  const open = { what: 'whether admission lets pods be deleted', reason: 'it looks at who asks' };
  expect(isOpenOnly({ notInspected: [open, open] })).toBe(true);
  expect(isOpenOnly({ notInspected: [open, { what: 'Secrets', reason: '403' }] })).toBe(false);
});

describe('the advice in every recording', () => {
  const all = readRecordedLooks().map(({ scenario, now, before }) => {
    const { findings } = diagnose(now, before);
    return { scenario, findings, actors: actorsOf(contextOf(now)) };
  });
  const wrong = (isWrong: (one: Remedy, of: Finding) => boolean): string[] =>
    all.flatMap(({ scenario, findings }) =>
      findings.flatMap((of) =>
        of.remedies.filter((one) => isWrong(one, of)).map(({ text }) => `${scenario}: ${text}`),
      ),
    );

  test('asks no author of a program, and starts nothing again in a terminating namespace', () => {
    expect(wrong(({ text }) => /\bauthor\b/.test(text))).toEqual([]);
    const isLost = ({ code, scope }: Finding): boolean =>
      code === 'owner-missing' && scope === 'namespace';
    expect(
      wrong(
        ({ text }, of) =>
          isLost(of) && /^Install\b/.test(text) && !text.includes('in another namespace'),
      ),
    ).toEqual([]);
  });

  test('reads no log of a workload without a pod that has started', () => {
    const logs = all.flatMap(({ scenario, findings, actors }) =>
      findings.flatMap(({ remedies }) =>
        remedies.flatMap(({ command = '' }) => {
          const [, kind, name, place] = /^kubectl logs (\w+)\/(\S+) -n (\S+)/.exec(command) ?? [];
          const actor = actors.find(
            (one) =>
              one.kind.toLowerCase() === kind && one.name === name && one.namespace === place,
          );
          return actor === undefined ? [] : [{ scenario, actor }];
        }),
      ),
    );
    expect(logs.length).toBeGreaterThan(50);
    expect(logs.filter(({ actor }) => actor.wanted === 0 && actor.pods.length === 0)).toEqual([]);
  });

  test('is not for the platform team if what is gone was in the namespace', () => {
    const hopeless = all.flatMap(({ findings }) =>
      findings.filter(({ message }) => message.includes('can never succeed')),
    );
    expect(hopeless.length).toBeGreaterThan(5);
    expect(hopeless.filter(({ scope }) => scope !== 'namespace')).toEqual([]);
  });

  test('begins with the log of an owner that runs and shows no reason, and time comes after it', () => {
    const silent = all.flatMap(({ findings }) =>
      findings.filter(({ message }) => /nothing that was read shows why/.test(message)),
    );
    expect(silent.length).toBeGreaterThan(5);
    for (const { remedies } of silent) {
      const log = remedies.findIndex(({ command = '' }) => command.startsWith('kubectl logs'));
      const time = remedies.findIndex(({ text }) => text.endsWith('raise the timeout'));
      if (log >= 0) expect(remedies[log]?.role).toBe('now');
      expect(time).toBeGreaterThan(log);
    }
  });
});

test('a controller that crashes again and again is told with how it ended', () => {
  const found = rootOf('everyday-kubebuilder-v4-crashing', () => {});
  expect(found.message).toContain('CrashLoopBackOff, ended before: Error, exit code 1');
});

test('an object that alone has a finalizer in its group is not called the first of those in other groups', () => {
  const { remedies } = rootOf('S4-queued', () => {});
  const texts = remedies.map(({ text }) => text);
  expect(texts).toContain('Remove this one finalizer from Widget db');
});

test('this namespace is exempted only from what refuses its own objects', () => {
  const { before, now } = readRecordedLook('S22');
  const context = contextOf(now, before);
  const [error] = classifyErrorText(DENIED).filter(isAdmissionError);
  if (error === undefined) throw new Error('no refusal');
  const exempts = (place?: string): boolean =>
    admissionResult(context, error, 'CREATE of pods', place).remedies.some(({ text }) =>
      text.startsWith('Exempt this namespace'),
    );
  expect([undefined, now.namespace.name, 'ops', ''].map(exempts)).toEqual([
    true,
    true,
    false,
    false,
  ]);
});

/** The remedies for what a webhook answers, where its configuration selects namespaces by these expressions. */
function answeredBy(webhook: string, message: string, matchExpressions: object[]): Remedy[] {
  const { now } = readRecordedLook('S22');
  now.cluster.validatingWebhooks = readOk(
    webhookFacts('ValidatingWebhookConfiguration')({
      metadata: { name: 'guards', uid: 'guards' },
      webhooks: [{ name: webhook, namespaceSelector: { matchExpressions } }],
    } as never),
  );
  const text = `admission webhook "${webhook}" denied the request: ${message}`;
  const [error] = classifyErrorText(text).filter(isAdmissionError);
  if (error === undefined) throw new Error('no refusal');
  return admissionResult(contextOf(now), error, 'DELETE of secrets').remedies;
}

const OPT_OUT = { key: 'guards.acme.org/ignore', operator: 'DoesNotExist' };
const SOME = { key: 'kubernetes.io/metadata.name', operator: 'NotIn', values: ['kube-system'] };

test.each<[string, object[], RegExp]>([
  [
    'the name, beside a label',
    [SOME, OPT_OUT],
    /^kubectl patch validatingwebhookconfiguration guards .*"DoesNotExist"/,
  ],
  [
    'the name',
    [SOME],
    /^kubectl patch validatingwebhookconfiguration guards .*"NotIn","values":\["preview-s22"\]/,
  ],
])(
  'the first step against a refusal exempts this namespace from the webhook, by %s',
  (_, selector, command) => {
    const [first, second] = answeredBy('guard.acme.org', 'ledgers are kept', selector);
    expect(first).toMatchObject({ role: 'now', command: expect.stringMatching(command) });
    expect(first?.risk).toMatch(/no longer checks/);
    expect(second?.text).toContain('"ledgers are kept"');
  },
);

test.each<[string, string]>([
  [
    'validate.kyverno.svc-fail',
    '\n\nresource Secret/shop/login was blocked due to the following policies\n\nkeep-secrets:\n  keep: secrets stay',
  ],
  ['validation.gatekeeper.sh', '[keep-secrets] secrets stay'],
])('the webhook of a policy engine, %s, leads to the policy', (webhook, message) => {
  const [first] = answeredBy(webhook, message, []);
  expect(first?.text).toMatch(/^Exclude this namespace from \w+ \w+ keep-secrets, in spec\./);
});

test('a refusal by a configuration that was not read is quoted, and leads to it', () => {
  const { now } = readRecordedLook('S22');
  now.cluster.validatingWebhooks = readOk([]);
  const [error] = classifyErrorText(DENIED).filter(isAdmissionError);
  if (error === undefined) throw new Error('no refusal');
  const { remedies } = admissionResult(contextOf(now), error, 'DELETE of secrets');
  expect(remedies[0]?.text).toContain('"label team is required"');
  expect(remedies[1]).toMatchObject({
    text: expect.stringContaining('guard.example.com'),
    role: 'look',
  });
});

/** A condition of every object that was read, which is False since then. */
const failedAt = (now: Snapshot, lastTransitionTime: string, message: string): void => {
  for (const read of Object.values(now.details)) {
    const condition = { type: 'Ready', status: 'False', reason: 'Failed', message };
    if (read.ok) read.value.conditions = [{ ...condition, lastTransitionTime }];
  }
};

test.each([
  ['api error NoSuchBucket: the bucket does not exist', /nothing is leaked/],
  ['api error AccessDenied', /may be leaked/],
  ['failed to drop: pq: database "shop" does not exist', /nothing is leaked/],
  ['failed to delete record: API key does not exist', /may be leaked/],
  ['failed to connect: pq: role "admin" does not exist', /may be leaked/],
])('what removing the finalizer leaks after %j', (message, risk) => {
  const { before, now } = readRecordedLook('put-back');
  failedAt(now, now.takenAt, message);
  const context = contextOf(now, before);
  const [held] = heldObjects(context) as [Held];
  expect(removalRemedies(context, held, [])[0]?.risk).toMatch(risk);
});

test.each([
  ['resources-finalizer.argocd.argoproj.io', /deployed|resources/i],
  ['acme.example/hold', /^whoever set it/],
])(
  'what removing %s leaks where a person set it: what is known of it comes first',
  (finalizer, risk) => {
    const context = contextOf(readRecordedLook('put-back').now);
    const [held] = heldObjects(context) as [Held];
    const writers = [{ finalizer, manager: 'kubectl-patch', operation: 'Update', time: undefined }];
    const type = { ...held.type, group: 'argoproj.io', kind: 'Application' };
    const subject = { ...held.subject, kind: 'Application' };
    const [removal] = removalRemedies(context, { ...held, finalizer, writers, type, subject }, []);
    expect(removal?.risk).toMatch(risk);
  },
);

test('a condition that was False before the deletion is quoted, with its age', () => {
  const { message } = rootOf('everyday-kubebuilder-v4-silent', (now) => {
    const deletedAt = Date.parse(now.namespace.deletionTimestamp ?? '');
    failedAt(now, new Date(deletedAt - 5_000).toISOString(), 'the licence has expired');
  });
  expect(message).toMatch(/said 5 s before the deletion: .*the licence has expired$/);
});
