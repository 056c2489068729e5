import { describe, expect, test } from 'vitest';
import { actorsOf } from '../../src/diagnose/actors.ts';
import { contextOf } from '../../src/diagnose/context.ts';
import { diagnose } from '../../src/diagnose/diagnose.ts';
import type { Diagnosis, Finding, Remedy } from '../../src/model/finding.ts';
import { FINDING_CODES } from '../../src/model/finding.ts';
import { outcomeOf } from '../../src/model/outcome.ts';
import { readOk } from '../../src/model/read.ts';
import { rootsOf } from '../../src/report/causes.ts';
import { buildReport, type ReportNamespace } from '../../src/report/report-json.ts';
import { chainClauses } from '../../src/report/sentences.ts';
import { toPlain } from '../../src/report/words.ts';
import type { Client } from '../cluster/client.ts';
import { differences } from '../cluster/compare.ts';
import type { Expectation, Scenario } from '../cluster/scenario.ts';
import { SCENARIOS } from '../cluster/scenarios/index.ts';
import { World } from '../cluster/world.ts';
import { namespaceResult, runOf } from '../stub/results.ts';
import { type Change, listed, named, role, rule, told } from './changes.ts';
import { expectationIn, type RecordedLooks, readRecordedLooks } from './recorded-looks.ts';

/**
 * What the gate saw on a real control plane, diagnosed again. What it must say is the scenario's own
 * expectation, so that the fast test and the slow one cannot disagree, or stands in the recording.
 */
const RECORDED = readRecordedLooks();

function scenarioOf(looks: RecordedLooks): Pick<Scenario, 'expect'> {
  const found = SCENARIOS.find(({ id }) => id === looks.scenario);
  return found ?? { expect: () => expectationIn(looks) as Expectation };
}

const known = new Map<RecordedLooks, Diagnosis>();

/** Diagnosed once, but for the test that it says the same twice. */
function diagnosisOf(looks: RecordedLooks): Diagnosis {
  const diagnosis = known.get(looks) ?? diagnose(looks.now, looks.before);
  known.set(looks, diagnosis);
  return diagnosis;
}

function reportOf(looks: RecordedLooks): ReportNamespace {
  const { name, uid, conditions, deletionTimestamp } = looks.now.namespace;
  const diagnosis = diagnosisOf(looks);
  const given = { name, uid, conditions, deletionTimestamp, diagnosis };
  const report = buildReport(runOf([namespaceResult({ ...given, outcome: outcomeOf(diagnosis) })]));
  return report.namespaces[0] as ReportNamespace;
}

/** The world as its scenario left it, as far as an expectation asks for it. */
function worldOf({ now, version }: RecordedLooks): World {
  const pods = now.pods.ok ? now.pods.value : [];
  const client = {
    call: async () => ({ body: { gitVersion: `v${version}` } }),
    list: async () => pods.map(({ name }) => ({ metadata: { name } })),
  };
  return new World({
    client: client as unknown as Client,
    plane: undefined,
    namespace: now.namespace.name,
    kubeconfig: () => '',
  });
}

describe('each recording of a real control plane is explained as its scenario expects', () => {
  for (const looks of RECORDED) {
    test(`${looks.scenario} (${looks.version}): ${looks.title}`, async () => {
      const expected = await scenarioOf(looks).expect(worldOf(looks));
      expect(differences(expected, reportOf(looks))).toEqual([]);
    });
  }
});

describe('every recorded hang', () => {
  test.each(RECORDED.map((looks) => ({ looks, name: `${looks.scenario} (${looks.version})` })))(
    '$name: blames nothing that was not asked to go, and says the same twice',
    ({ looks }) => {
      const diagnosis = diagnosisOf(looks);
      const waiting = looks.now.content.flatMap(({ type, read }) =>
        read.ok && read.value.total > 0 && read.value.total === read.value.queued ? type.kind : [],
      );
      const held = diagnosis.findings.filter(({ code }) => code === 'object-finalizer');
      expect(held.filter(({ subject }) => waiting.includes(subject.kind))).toEqual([]);
      expect(diagnose(looks.now, looks.before)).toEqual(diagnosis);
    },
  );
});

test('every finding code occurs in a recording', () => {
  const seen = new Set(
    RECORDED.flatMap((looks) => diagnosisOf(looks).findings).map(({ code }) => code),
  );
  expect(FINDING_CODES.filter((code) => !seen.has(code))).toEqual([]);
});

test('recordings contain nothing of the machine that made them', () => {
  const own = /127\.0\.0\.1|\/tmp\/|\/root\/|\/home\/|eyJ[\w-]{10,}/;
  for (const looks of RECORDED) expect(JSON.stringify(looks), looks.scenario).not.toMatch(own);
});

/** Words by which a sentence says that it is not proven. */
const NOT_PROVEN =
  /most likely|\bmay\b|\bcould\b|not known|is one of|no controller that removes it was found|would not be visible|where that runs|nothing .* shows|seems to/;

test('a finding that is not proven says so in its sentence', () => {
  const all = RECORDED.flatMap((looks) =>
    diagnosisOf(looks).findings.map((finding) => ({ ...finding, by: looks.scenario })),
  );
  // A denial quotes the answer to a request: that is what was observed.
  const doubtful = all.filter(
    ({ certainty = 'proven', code }) => certainty !== 'proven' && code !== 'admission-denied',
  );
  expect(doubtful.length).toBeGreaterThan(100);
  expect(
    doubtful
      .filter(({ message }) => !NOT_PROVEN.test(message))
      .map(({ by, code, message }) => `${by} ${code}: ${message}`),
  ).toEqual([]);
});

test.each<[what: string, isWrong: (of: Finding, remedy: Remedy) => boolean]>([
  ['asks the author of a program', (_, { text }) => /\bauthor\b/.test(text)],
  [
    'starts something again in a terminating namespace',
    ({ code, scope }, { text }) =>
      code === 'owner-missing' &&
      scope === 'namespace' &&
      /^Install\b(?!.*in another namespace)/.test(text),
  ],
  [
    'is for the platform team if what is gone was in the namespace',
    ({ message, scope }) => /can never succeed/.test(message) && scope !== 'namespace',
  ],
])('no advice in any recording %s', (_, isWrong) => {
  const wrong = RECORDED.flatMap((looks) =>
    diagnosisOf(looks).findings.flatMap((of) =>
      of.remedies.flatMap((one) => (isWrong(of, one) ? `${looks.scenario}: ${one.text}` : [])),
    ),
  );
  expect(wrong).toEqual([]);
});

test('no remedy reads the log of a workload without a pod that has started', () => {
  const logs = RECORDED.flatMap((looks) => {
    const actors = new Map(
      actorsOf(contextOf(looks.now)).map((one) => [
        `${one.kind.toLowerCase()}/${one.name} -n ${one.namespace}`,
        one,
      ]),
    );
    const commands = diagnosisOf(looks).findings.flatMap(({ remedies }) =>
      remedies.flatMap(({ command = '' }) => /^kubectl logs (\S+ -n \S+)/.exec(command)?.[1] ?? []),
    );
    return commands.flatMap((place) => actors.get(place) ?? []);
  });
  expect(logs.length).toBeGreaterThan(50);
  expect(logs.filter(({ wanted, pods }) => wanted === 0 && pods.length === 0)).toEqual([]);
});

test('advice about an owner that runs and shows no reason begins with its log, and time comes after it', () => {
  const silent = RECORDED.flatMap((looks) => diagnosisOf(looks).findings).filter(({ message }) =>
    /nothing that was read shows why/.test(message),
  );
  expect(silent.length).toBeGreaterThan(5);
  for (const { remedies } of silent) {
    const log = remedies.findIndex(({ command = '' }) => command.startsWith('kubectl logs'));
    const time = remedies.findIndex(({ text }) => text.endsWith('raise the timeout'));
    if (log >= 0) expect(remedies[log]?.role).toBe('now');
    expect(time).toBeGreaterThan(log);
  }
});

test('a cause has at most 30 words, besides the words of another program', () => {
  const long = RECORDED.flatMap((looks) => {
    const found = diagnosisOf(looks);
    const told = namespaceResult({ name: looks.now.namespace.name, diagnosis: found });
    const scene = { home: told.name, now: looks.now.takenAt };
    // The finding about a webhook or a policy has its own sentence beside that of the controller.
    const ends = rootsOf(told).filter(({ finding }) => !finding.code.startsWith('admission-'));
    const causes = ends.map((root) => {
      const whole = toPlain(chainClauses(root, scene).join('; '));
      return root.links.reduce((text, { quote = '' }) => text.replace(quote, ''), whole);
    });
    const messages = found.findings.map(({ message, quote = '' }) => message.replace(quote, ''));
    return [...causes, ...messages]
      .filter((text) => text.split(/\s+/).length > 30)
      .map((text) => `${looks.scenario}: ${text}`);
  });
  expect(long).toEqual([]);
});

test('no remedy starts an owner if workloads could not be read', () => {
  const changed = RECORDED.flatMap(({ now, before, scenario }) => {
    const what = 'deployments';
    const unread = [...now.unread, { what, source: what, reason: 'forbidden', message: '' }];
    const found = diagnose({ ...now, unread } as typeof now, before).findings;
    return found.flatMap(({ code, remedies }) =>
      code === 'owner-unknown' ? remedies.map(({ text }) => `${scenario}: ${text}`) : [],
    );
  });
  expect(changed.length).toBeGreaterThan(100);
  expect(changed.filter((text) => /: (?:Start|Bring|Install|Restart) /.test(text))).toEqual([]);
});

test.each([
  ['helm', /^Start Deployment \S+ through Subscription widgets, which manages it .* removes the/],
  ['Mozilla', /^Scale Deployment \S+ up; it then removes the finalizer$/],
])('an owner whose replicas %j has set to 0 is started where these are managed', (...row) => {
  const [manager, first] = row;
  const of = { apiVersion: 'operators.example.com/v1', kind: 'Subscription', name: 'widgets' };
  const { root } = told('S3', (now) => {
    const given = { owner: { ...of, uid: '5d0f', controller: true }, scaledBy: { manager } };
    for (const one of listed(now, 'deployments')) Object.assign(one, given);
  });
  expect(root.remedies[0]?.text).toMatch(first);
  expect(root.remedies.find(({ command }) => command)?.command).toMatch(/^kubectl scale /);
});

test.each([
  ['everyday-flux-helm-asleep', /^Scale .* up; it then removes the finalizer, but it may need /],
  ['everyday-crossplane-asleep', /^Remove this one finalizer from Bucket db$/],
  ['made-solr-role-lost', /^Create ClusterRole solr-operator-role again, /],
  ['made-own-reconciler-unbound', /^Bind ClusterRole mysqlschemareconciler-cluster-role to /],
  ['made-own-secret-of-operator-gone', /^Create secret "\S+-credentials" in namespace \S+ again/],
])('the first fix of an owner that lacks something begins with that (%s)', (recording, fix) => {
  expect(told(recording).root.remedies[0]?.text).toMatch(fix);
});

test.each([
  ['other-operator', false],
  ['widget-operator', true],
])('a Lease with another name, written by %s, is that of widget-operator: %s', (writer, isIts) => {
  const { owner } = told('not-leading', (now) => {
    const lease = named(listed(now, 'leases'), 'widget-operator');
    const holder = `${writer}-0_1`;
    Object.assign(lease, { name: 'csi-example-com', holder, writers: [writer] });
  });
  const says = 'may have no leader: Lease widget-system/csi-example-com';
  expect(owner?.message.includes(says)).toBe(isIts);
});

const commandsOf = (scenario: string, change?: Change): string[] =>
  told(scenario, change).findings.flatMap(({ remedies }) =>
    remedies.flatMap(({ command }) => command ?? []),
  );

const deletionTimestamp = '2026-01-01T00:00:00Z';
const ENDS: Record<string, Change> = {
  'that is being deleted': (now) =>
    Object.assign(named(listed(now, 'deployments'), 'widget-operator'), { deletionTimestamp }),
  'whose namespace is being deleted': (now) => {
    const { namespace } = named(listed(now, 'deployments'), 'widget-operator');
    Object.assign(named(listed(now, 'namespaces'), namespace), { deletionTimestamp });
  },
};

test.each(
  ['S40', 'lost-for-two-objects'].flatMap((scenario) =>
    Object.entries(ENDS).map(([what, change]) => ({ scenario, what, change })),
  ),
)('in $scenario, an owner $what is not restarted', ({ scenario, change }) => {
  const restarts = (commands: string[]) => commands.filter((one) => /rollout restart/.test(one));
  expect(restarts(commandsOf(scenario))).not.toEqual([]);
  expect(restarts(commandsOf(scenario, change))).toEqual([]);
});

test('a remedy grants a permission for the held objects, if all are known, and for all if the verb is list', () => {
  const granted = (scenario: string, change?: Change): string =>
    commandsOf(scenario, change).find((one) => one.includes('create clusterrole ')) ?? '';
  expect(granted('lost-for-two-objects')).toMatch(/--resource-name=db --resource-name=second /);
  const many = granted('lost-for-two-objects', ({ content }) => {
    for (const { read } of content)
      for (const group of read.ok ? read.value.terminating : []) group.count = 200;
  });
  expect(many).toMatch(/--resource=widgets\.example\.com /);
  expect(many).not.toContain('--resource-name');
  expect(granted('S86-role')).toMatch(/'--verb=get,list,watch,update,patch' (?!.*--resource-name)/);
  const [bound] = commandsOf('everyday-client-go-binding-lost');
  expect(bound).toMatch(/^kubectl create clusterrolebinding \S+ --clusterrole=dns-zone-\w+ /);
  const [both] = commandsOf('everyday-client-go-binding-lost', ({ places }) => {
    const roles = readOk([role('leads', [rule('coordination.k8s.io', ['leases'], 'update')])]);
    for (const one of Object.values(places))
      Object.assign(one, { roles, roleBindings: readOk([]) });
  });
  expect(both).toMatch(/ create rolebinding \S+ -n \S+ --role=leads .* && .* rollout restart /);
});

test('what a guard may refuse, and a silent kube-controller-manager, is tried by a dry run next', () => {
  const commands = commandsOf('put-back', (now) => Object.assign(now, { trials: {} }));
  const others = commandsOf('S25a', (now) => Object.assign(now, { pods: undefined }));
  expect([...commands, ...others].filter((one) => /--dry-run=server$/.test(one))).toHaveLength(2);
});
