import { expect, test } from 'vitest';
import { realRequest } from '../../src/diagnose/admission/guards.ts';
import { refusalResult } from '../../src/diagnose/admission/refusals.ts';
import { type Context, contextOf } from '../../src/diagnose/context.ts';
import { objectDetail } from '../../src/diagnose/detail.ts';
import { classifyErrorText, isAdmissionError } from '../../src/diagnose/error-texts.ts';
import { heldObjects } from '../../src/diagnose/owner/finalizers.ts';
import type { Held } from '../../src/diagnose/owner/held.ts';
import { removalRemedies } from '../../src/diagnose/owner/remedies.ts';
import { wantedFor } from '../../src/diagnose/wanted.ts';
import { policyBindingFacts, policyFacts, webhookFacts } from '../../src/model/facts/admission.ts';
import { FINALIZE, POD_TYPE } from '../../src/model/facts/metadata.ts';
import { workloadFacts } from '../../src/model/facts/workloads.ts';
import type { Finding, Remedy } from '../../src/model/finding.ts';
import { readOk } from '../../src/model/read.ts';
import {
  type PodFacts,
  partnerKey,
  type ResourceType,
  type Snapshot,
} from '../../src/model/snapshot.ts';
import { isOpenOnly } from '../../src/report/situations.ts';
import { type Change, heldIn, listed, named, told } from './changes.ts';
import { readRecordedLook } from './recorded-looks.ts';
import { contentOf, typeOf } from './snapshots.ts';

/** What a report advises about a recorded hang that differs in one thing. */

const rootOf = (scenario: string, change: Change): Finding => told(scenario, change).root;

const crowd =
  (count: number, others: number): Change =>
  (now) => {
    const [first] = now.pods.ok ? (now.pods.value as [PodFacts]) : [];
    if (first === undefined) throw new Error('no pod');
    const pods = (length: number, start: string, more: Partial<PodFacts>) =>
      Array.from({ length }, (_, at) => `${start}-${at}`).map((name) => ({
        ...{ ...structuredClone(first), name, uid: name, ...more },
      }));
    const alive = { deletionTimestamp: undefined };
    now.pods = readOk([...pods(count, 'web', {}), ...pods(others, 'new', alive)]);
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

const changer = (name: string) =>
  webhookFacts('MutatingWebhookConfiguration')({
    metadata: { name, uid: name },
    webhooks: [
      {
        name: `${name}.example.com`,
        clientConfig: { url: 'https://example.com' },
        rules: [['apps'], ['*']].map((apiGroups) => ({
          ...{ operations: ['*'], apiGroups, apiVersions: ['*'], resources: ['*'] },
        })),
      },
    ],
  });

const EVERYTHING = { apiGroups: ['*'], apiVersions: ['*'], resources: ['*'] };
const POLICY = policyFacts('MutatingAdmissionPolicy')({
  metadata: { name: 'sizes' },
  spec: {
    matchConstraints: { resourceRules: [{ operations: ['CREATE', 'UPDATE'], ...EVERYTHING }] },
  },
});
const BINDING = policyBindingFacts({
  metadata: { name: 'sizes-here' },
  spec: { policyName: 'sizes' },
});

const IMMUTABLE =
  'Widget.example.com "db" is invalid: spec.size: Invalid value: 3: field is immutable';
const POD = `Pod "migrate-x6qrj" is invalid: spec: Forbidden: pod updates may not change fields other than \`spec.containers[*].image\``;
const INVALID = 'Widget.example.com "db" is invalid: spec.size: Required value';
const OTHER_JOB =
  'Job.batch "drop-db" is invalid: spec.template: Invalid value: {}: field is immutable';
const DENIED = 'admission webhook "guard.example.com" denied the request: label team is required';

/** Who says it: the answer to the dry run, which the gate may not be allowed to send, the status, or an Event. */
function say(now: Snapshot, source: string, message: string): void {
  const lastTransitionTime = now.takenAt;
  for (const trial of Object.values(now.trials)) {
    const answered = { answer: 'refused', message };
    const untried = { answer: 'unknown', message: 'widgets is forbidden' };
    Object.assign(trial, source === 'its dry run' ? answered : untried);
  }
  if (source === 'the status') {
    const condition = { type: 'Ready', status: 'False', reason: 'Failed', message };
    for (const read of Object.values(now.details))
      if (read.ok) read.value.conditions.push({ ...condition, lastTransitionTime });
  }
  if (source === 'an Event') {
    const [regarding] = heldIn(now);
    const { events } = now.places[now.namespace.name] ?? {};
    if (!events?.ok || regarding === undefined) throw new Error('no object');
    const event = { type: 'Warning', reason: 'FailedUpdate', message, regarding };
    events.value.push({ ...event, component: 'x', instance: '', at: now.takenAt });
  }
}

function obstacles(scenario: string, source: string, text: string, ...names: string[]): Finding[] {
  const { roots } = told(scenario, (now) => {
    const isPolicy = names.includes('sizes');
    now.cluster.mutatingPolicies = readOk(isPolicy ? [POLICY] : []);
    now.cluster.mutatingPolicyBindings = readOk(isPolicy ? [BINDING] : []);
    now.cluster.mutatingWebhooks = readOk(
      names.filter((name) => name !== 'sizes').flatMap((name) => changer(name)),
    );
    say(now, source, text);
  });
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

test.each<[scenario: string, source: string, text: string, first: RegExp]>([
  // A change of another object, and an object that is invalid itself, are no fault of the webhook that is there.
  ['put-back', 'the status', OTHER_JOB, /^(?!Limit)/],
  ['put-back', 'its dry run', INVALID, /^Make \w+ \S+ valid, or let its type accept it/],
])('in %s, %s says %s: the first step', (scenario, source, text, first) => {
  const roots = obstacles(scenario, source, text, 'sidecar');
  expect(roots[0]?.remedies[0]?.text).toMatch(first);
  expect(JSON.stringify(roots)).not.toContain('admission-denied');
});

test('what only an Event reports of a removal ends the chain behind kube-controller-manager, or is quoted', () => {
  const [root] = obstacles('S22', 'an Event', `error removing finalizer: ${DENIED}`);
  expect(root).toMatchObject({ code: 'admission-denied', subject: { name: 'guard' } });
  const failed = 'failed to delete volume: it is in use';
  expect(rootOf('S22', (now) => say(now, 'an Event', failed)).quote).toBe(failed);
});

test('texts that name their objects are one piece of advice about what refuses them', () => {
  const { root } = told('S22', (now) => {
    now.cluster.validatingWebhooks = readOk([]);
    now.trials = {};
    const [one] = heldIn(now);
    const [group] = now.content.flatMap(({ read }) =>
      read.ok ? read.value.terminating.filter(({ finalizers }) => finalizers.length > 0) : [],
    );
    const { events } = now.places[now.namespace.name] ?? {};
    if (!events?.ok || one === undefined || group === undefined) throw new Error('no object');
    group.examples = ['a', 'b', 'c'].map((name) => ({ ...one, name, uid: name }));
    for (const regarding of group.examples) {
      const message = `error removing finalizer: ${DENIED} of ${regarding.name}`;
      const event = { type: 'Warning', reason: 'FailedUpdate', message, regarding };
      events.value.push({ ...event, component: 'x', instance: '', at: now.takenAt });
    }
  });
  expect(root.remedies.filter(({ role }) => role === 'now')).toHaveLength(1);
});

test('a forecast leaves a question open if nothing but the deletion can answer it', () => {
  const open = { what: 'whether admission lets pods be deleted', reason: 'it looks at who asks' };
  expect(isOpenOnly({ notInspected: [open, open] })).toBe(true);
  expect(isOpenOnly({ notInspected: [open, { what: 'Secrets', reason: '403' }] })).toBe(false);
});

test('a crash is told with how it ended; an object that alone of its type has a finalizer is not called the first', () => {
  const { message } = rootOf('everyday-kubebuilder-v4-crashing', () => {});
  expect(message).toContain('CrashLoopBackOff, ended before: Error, exit code 1');
  const { remedies } = rootOf('S4-queued', (now) => {
    const others = [typeOf('example.com', 'gadgets', 'Gadget'), typeOf('', 'secrets', 'Secret')];
    const held = now.content.flatMap(({ read }) => (read.ok ? read.value.terminating : []));
    now.content.push(...others.map((type) => contentOf(type, held)));
  });
  const texts = remedies.map(({ text }) => text);
  expect(texts).toContain('Remove this one finalizer from Widget db');
});

const denial = (text: string) => {
  const [error] = classifyErrorText(text).filter(isAdmissionError);
  if (error === undefined) throw new Error('no refusal');
  return error;
};

const CLUSTER_SCOPED = { ...POD_TYPE, namespaced: false };

const LATE = { manager: 'kubectl-annotate', time: '2099-01-01T00:00:00Z' };

/** The remedies where an update of this object is refused. */
function remediesAgainst(context: Context, text: string, type: ResourceType, namespace: string) {
  const object = { name: 'preview-s22', namespace, labels: {} };
  const request = realRequest(context, 'UPDATE', type, object);
  return refusalResult(context, denial(text), request).remedies;
}

test.each([
  ['an object of it', POD_TYPE, 'preview-s22', true],
  ['the last request for itself', FINALIZE, '', true],
  ['an object elsewhere', POD_TYPE, 'ops', false],
  ['a cluster-scoped object', CLUSTER_SCOPED, '', false],
])('this namespace is exempted from what refuses %s', (_, type, place, isExempted) => {
  const context = contextOf(readRecordedLook('S22').now);
  const remedies = remediesAgainst(context, DENIED, type, place);
  const isExemption = ({ text }: Remedy): boolean => text.startsWith('Exempt this namespace');
  expect(remedies.some(isExemption)).toBe(isExempted);
});

test.each([
  ['policy', 'mutating'],
  ['ValidatingAdmissionPolicy', 'validating'],
])('of two policies of one name, the namespace is exempted from the one that says %s', (...row) => {
  const [said, kind] = row;
  const { now } = readRecordedLook('S22');
  const own = { metadata: { name: 'guard' }, spec: {} };
  const binding = { metadata: { name: 'all' }, spec: { policyName: 'guard' } };
  now.cluster.validatingPolicies = readOk([policyFacts('ValidatingAdmissionPolicy')(own)]);
  now.cluster.mutatingPolicies = readOk([policyFacts('MutatingAdmissionPolicy')(own)]);
  now.cluster.validatingPolicyBindings = readOk([policyBindingFacts(binding)]);
  now.cluster.mutatingPolicyBindings = readOk([policyBindingFacts(binding)]);
  const text = `pods "db" is forbidden: ${said} 'guard' with binding 'all' denied request: no`;
  const [{ command }] = remediesAgainst(contextOf(now), text, POD_TYPE, now.namespace.name) as [
    Remedy,
  ];
  expect(command).toMatch(new RegExp(`^kubectl patch ${kind}admissionpolicybinding all `));
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
  return remediesAgainst(contextOf(now), text, POD_TYPE, now.namespace.name);
}

const OPT_OUT = { key: 'guards.acme.org/ignore', operator: 'DoesNotExist' };
const SOME = { key: 'kubernetes.io/metadata.name', operator: 'NotIn', values: ['kube-system'] };

const PATCH = /^kubectl patch validatingwebhookconfiguration guards /.source;

test.each<[by: string, selector: object[], command: RegExp]>([
  ['the name, beside a label', [SOME, OPT_OUT], new RegExp(`${PATCH}.*"DoesNotExist"`)],
  ['the name', [SOME], new RegExp(`${PATCH}.*"NotIn","values":\\["preview-s22"\\]`)],
])('the first step against a refusal exempts this namespace from the webhook, by %s', (...row) => {
  const [, selector, command] = row;
  const [first, second] = answeredBy('guard.acme.org', 'ledgers are kept', selector);
  expect(first).toMatchObject({ role: 'now', command: expect.stringMatching(command) });
  expect(first?.risk).toMatch(/no longer checks/);
  expect(second?.text).toContain('"ledgers are kept"');
});

test.each<[string, string]>([
  [
    'validate.kyverno.svc-fail',
    '\n\nresource Secret/shop/login was blocked due to the following policies\n\nkeep-secrets:\n  keep: secrets stay',
  ],
  ['validation.gatekeeper.sh', '[keep-secrets] secrets stay'],
])('the webhook of a policy engine, %s, leads to the policy', (webhook, message) => {
  const [first] = answeredBy(webhook, message, []);
  expect(first?.text).toMatch(/^Exclude this namespace from the policy that the message names/);
});

test('a refusal of a policy engine that names no policy excludes none', () => {
  const [first] = answeredBy('check-ignore-label.gatekeeper.sh', 'Only exempt namespaces', []);
  expect(first?.text).toMatch(/^Exempt this namespace from webhook check-ignore-label/);
});

test('a refusal by a configuration that was not read is quoted, and leads to it', () => {
  const { now } = readRecordedLook('S22');
  now.cluster.validatingWebhooks = readOk([]);
  const remedies = remediesAgainst(contextOf(now), DENIED, POD_TYPE, now.namespace.name);
  expect(remedies[0]?.text).toContain('"label team is required"');
  expect(remedies[1]).toMatchObject({
    text: expect.stringContaining('guard.example.com'),
    role: 'look',
  });
});

/** A condition of every object that was read, which is False since then. */
const failedAt = (
  now: Snapshot,
  lastTransitionTime: string,
  message: string,
  reason = 'Failed',
): void => {
  for (const read of Object.values(now.details)) {
    const condition = { type: 'Ready', status: 'False', reason, message };
    if (read.ok) read.value.conditions = [{ ...condition, lastTransitionTime }];
  }
};

test.each([
  ['resources-finalizer.argocd.argoproj.io', /deployed|resources/i],
  ['acme.example/hold', /^whoever set it/],
])(
  'what removing %s leaks where a person set it: what is known of it comes first',
  (finalizer, risk) => {
    const context = contextOf(readRecordedLook('put-back').now);
    const [held] = heldObjects(context) as [Held];
    const writers = [{ finalizer, manager: 'kubectl-patch', time: undefined }];
    const type = { ...held.type, group: 'argoproj.io', kind: 'Application' };
    const subject = { ...held.subject, kind: 'Application' };
    const [removal] = removalRemedies(context, { ...held, finalizer, writers, type, subject }, []);
    expect(removal?.risk).toMatch(risk);
  },
);

test.each([
  ['api error NoSuchBucket: the bucket does not exist', /nothing is leaked/],
  ['api error AccessDenied', /may be leaked/],
  ['failed to drop: pq: database "shop" does not exist', /nothing is leaked/],
  ['failed to delete record: API key does not exist', /may be leaked/],
  ['failed to connect: pq: role "admin" does not exist', /may be leaked/],
  ['connection refused: the proxy answers 404', /may be leaked/],
])('what removing the finalizer leaks after %j', (message, risk) => {
  const { before, now } = readRecordedLook('put-back');
  failedAt(now, now.takenAt, message);
  const context = contextOf(now, before);
  const [held] = heldObjects(context) as [Held];
  expect(removalRemedies(context, held, [])[0]?.risk).toMatch(risk);
});

test('a condition that was False before the deletion is quoted, with its age, and to be resolved', () => {
  const { message, remedies } = rootOf('everyday-kubebuilder-v4-silent', (now) => {
    const deletedAt = Date.parse(now.namespace.deletionTimestamp ?? '');
    failedAt(now, new Date(deletedAt - 5_000).toISOString(), 'the licence has expired');
  });
  expect(message).toMatch(
    /runs\. Status condition Ready=False .* has said since before the deletion \(10 s earlier\): .*the licence has expired$/,
  );
  expect(remedies.filter(({ role }) => role === 'now').map(({ text }) => text)).toEqual([
    expect.stringMatching(/^Read the log of /),
    expect.stringMatching(/^Resolve what status condition Ready=False .* says, if that is why/),
  ]);
});

test('a text about work that the terminating namespace stops is nothing to resolve', () => {
  const { remedies } = rootOf('everyday-kubebuilder-v4-silent', (now) => {
    const message = `could not sync: services "db" is forbidden: unable to create new content in namespace ${now.namespace.name} because it is being terminated`;
    failedAt(now, now.takenAt, message, 'SyncFailed');
  });
  expect(remedies[0]?.text).toMatch(/^Read the log of /);
  expect(JSON.stringify(remedies)).not.toContain('Resolve what');
});

test.each([
  ['example.com', 'blocks UPDATE of widgets.example.com'],
  ['networking.istio.io', 'blocks another request of the controller'],
])('a webhook for objects of %s that a text names %s', (group, about) => {
  const { root } = told('put-back', (now) => {
    const rules = [{ apiGroups: [group], apiVersions: ['*'], operations: ['*'], resources: ['*'] }];
    now.cluster.mutatingWebhooks = readOk([]);
    now.cluster.validatingWebhooks = readOk(
      webhookFacts('ValidatingWebhookConfiguration')({
        metadata: { name: 'mesh', uid: 'mesh' },
        webhooks: [{ name: 'check.mesh.io', clientConfig: { url: 'https://mesh.example' }, rules }],
      }),
    );
    say(now, 'the status', 'failed calling webhook "check.mesh.io": failed to call webhook: EOF');
  });
  expect(root.subject.name).toBe('mesh');
  expect(root.message).toContain(about);
});

test('where the external resource is gone, one removal is the fix, and to keep that resource an alternative', () => {
  const { remedies } = rootOf('everyday-crossplane-refused', (now) =>
    failedAt(now, now.takenAt, 'cannot delete bucket: StatusCode: 404, NoSuchBucket: not found'),
  );
  const commands = remedies.filter(({ command }) => command).map(({ role }) => role);
  expect(remedies[0]?.text).toMatch(/^Remove this one finalizer/);
  expect(commands).toEqual(['now', 'or', 'look']);
});

const POD_SPEC = {
  serviceAccountName: 'widget-operator',
  volumes: [
    { name: 'tls', secret: { secretName: 'serving-cert' } },
    { name: 'ca', projected: { sources: [{ configMap: { name: 'root-ca' } }] } },
    { name: 'extra', secret: { secretName: 'extra', optional: true } },
  ],
  containers: [
    { name: 'manager', envFrom: [{ secretRef: { name: 'cloud-credentials' } }] },
    { name: 'proxy', env: [{ valueFrom: { secretKeyRef: { name: 'serving-cert', key: 'x' } } }] },
  ],
};

test.each([
  [[], /^Scale Deployment /],
  [['ServiceAccount widget-operator'], /^First create ServiceAccount widget-system\/widget-oper/],
  [['Secret serving-cert'], /^First create Secret widget-system\/serving-cert, without which/],
  [
    ['ConfigMap root-ca', 'Secret cloud-credentials'],
    /^First create ConfigMap widget-system\/root-ca and Secret widget-system\/cloud-credentials, .*Then scale Deployment widget-system\/widget-operator up; it then removes the finalizer$/,
  ],
])('a controller without replicas that also lacks %j', (lacking, advice) => {
  const { root } = told('S3', (now) => {
    const asleep = named(listed(now, 'deployments'), 'widget-operator');
    const { requires } = workloadFacts(
      'apps/v1',
      'Deployment',
    )({ spec: { template: { spec: POD_SPEC } } });
    Object.assign(asleep, { requires });
    const { partners } = wantedFor(now);
    const names = partners.map(({ type, name }) => `${type.kind} ${name}`);
    expect(names).toEqual(expect.arrayContaining(lacking));
    expect(names).not.toContain('Secret extra');
    const [found] = heldIn(now);
    for (const one of partners) {
      const isLacking = lacking.includes(`${one.type.kind} ${one.name}`);
      now.partners[partnerKey({ ...one.type, ...one })] = readOk(isLacking ? undefined : found);
    }
  });
  expect(root.code).toBe('owner-scaled-to-zero');
  expect(root.remedies[0]?.text).toMatch(advice);
});

test('what starts an owner through Git names first what its pods lack', () => {
  const { root } = told('S3', (now) => {
    const asleep = named(listed(now, 'deployments'), 'widget-operator');
    Object.assign(asleep, { scaledBy: { manager: 'argocd-controller' } });
    for (const one of wantedFor(now).partners)
      now.partners[partnerKey({ ...one.type, ...one })] = readOk(undefined);
  });
  expect(root.remedies[0]?.text).toMatch(
    /^First create ServiceAccount \S+, without .* Then start Deployment \S+ through field manager "argocd-controller", which/,
  );
});

test('nothing is read of what another candidate without replicas lacks, beside a living owner', () => {
  const partnersWith = (wanted: number): string[] => {
    const { now } = readRecordedLook('S3');
    const deployments = listed(now, 'deployments');
    const owner = named(deployments, 'widget-operator');
    const requires = [{ kind: 'Secret', name: 'credentials' }];
    const other = { ...owner, requires, name: 'console', uid: 'console', programs: ['console'] };
    deployments.push({ ...other, requires: [{ kind: 'Secret', name: 'certificate' }] });
    Object.assign(owner, { requires, wanted, ready: wanted });
    return wantedFor(now).partners.map(({ name }) => name);
  };
  expect(partnersWith(0)).toContain('credentials');
  expect(partnersWith(0)).not.toContain('certificate');
  expect(partnersWith(1)).not.toContain('certificate');
});

test.each([
  ['the annotation of a user', { lateWriters: [LATE] }, true],
  ['a status', { statusWriters: [LATE] }, false],
])('beside %s since the deletion, a silent owner is asked what it lacks', (...row) => {
  const [, writes, isAsked] = row;
  const { owner } = told('everyday-kubebuilder-v4-silent', (now) => {
    const secrets = typeOf('', 'secrets', 'Secret');
    now.content = [...now.content.filter(({ type }) => type.kind !== 'Secret'), contentOf(secrets)];
    if (now.discovery.ok) now.discovery.value.types.push(secrets);
    for (const object of heldIn(now)) {
      const { kind, namespace, name } = object;
      Object.assign(object, { statusWriters: [] }, writes);
      const spec = { credentials: { secretRef: { name: 'creds' } } };
      now.details[object.uid] = readOk(objectDetail({ kind, metadata: { namespace, name }, spec }));
    }
  });
  expect(owner?.code).toBe('owner-running');
  expect(owner?.message.includes('it may need Secret creds')).toBe(isAsked);
});

test('a pause of an object of this namespace lies in the namespace', () => {
  const { root } = told('everyday-kubebuilder-v4-silent', (now) => {
    for (const { annotations, apiVersion } of heldIn(now)) {
      annotations[`${apiVersion.split('/')[0]}/paused`] = 'true';
    }
  });
  expect(root).toMatchObject({ code: 'owner-not-acting', scope: 'namespace' });
});

test.each([
  ['a Service', ['0', '1']],
  ['a URL', ['0']],
])('requests pass while no webhook of the same server, %s, answers', (server, passing) => {
  const { root } = told('S19', (now) => {
    const webhook = named(listed(now, 'validatingWebhooks'), '');
    if (server === 'a URL') webhook.service = undefined;
    const others = ['same', 'open', 'elsewhere'].map((name, at) => ({
      ...{ ...webhook, name, index: at + 1 },
      failurePolicy: name === 'open' ? 'Ignore' : 'Fail',
      service: name === 'elsewhere' ? { namespace: 'ops', name } : webhook.service,
    }));
    listed(now, 'validatingWebhooks').push(...(others as (typeof webhook)[]));
  });
  const [pass] = root.remedies.filter(({ text }) => text.startsWith('Let requests pass'));
  expect(pass?.command?.match(/\d(?=\/failurePolicy)/g)).toEqual(passing);
});

test('a conversion whose namespace is gone is installed again first: without it, a write loses data', () => {
  const gone = (text: string) => text.replaceAll('conv.preview-s13', 'conv.gone');
  const nothing = { services: readOk([]), pods: readOk([]) };
  const { root } = told('S13', (now) => Object.assign(now.places, { gone: nothing }), gone);
  expect(root.remedies[0]?.text).toMatch(/^Install the software behind Service gone\/conv again/);
});

test.each([
  'dial tcp 10.0.0.7:5432: connect: connection refused',
  'Widget.example.com "db" is invalid: metadata.finalizers: Forbidden: no new finalizers can be added if the object is being deleted',
])('what no command resolves has the removal as the last step: %s', (message) => {
  const { remedies } = rootOf('everyday-kubebuilder-v4-silent', (now) =>
    failedAt(now, now.takenAt, message),
  );
  expect(remedies.findLast(({ role }) => role === 'or')?.text).toMatch(
    /^Remove this one finalizer/,
  );
});

test('where nothing was said since the deletion, a Warning from before is quoted, with its age', () => {
  const { message } = rootOf('everyday-kubebuilder-v4-silent', (now) => {
    const [regarding] = heldIn(now);
    const events = now.places[now.namespace.name]?.events;
    if (!events?.ok || regarding === undefined) throw new Error('no object');
    const at = new Date(Date.parse(regarding.deletionTimestamp ?? '') - 600_000).toISOString();
    const event = { type: 'Warning', reason: 'Failed', message: 'no licence is left', regarding };
    events.value.push({ ...event, at, component: '', instance: '' });
  });
  expect(message).toMatch(/ Event Failed about .* \(10m 00s earlier\): no licence is left$/);
});

test('of several pods, the log of the one that leads', () => {
  const { remedies } = rootOf('everyday-helm-operator-refused', ({ places }) => {
    const { pods } = places['nginx-operator-system'] ?? {};
    if (!pods?.ok) throw new Error('no pods');
    const [first] = pods.value as [PodFacts];
    (pods.value as PodFacts[]).unshift({ ...first, name: 'standby', uid: 'standby' });
  });
  const commands = remedies.flatMap(({ command }) => command ?? []);
  expect(commands).toContainEqual(
    expect.stringMatching(/^kubectl logs pod\/nginx-operator-controller-manager-\S+ -n /),
  );
});
