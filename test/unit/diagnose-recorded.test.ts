import { describe, expect, test } from 'vitest';
import { diagnose } from '../../src/diagnose/diagnose.ts';
import { type Diagnosis, FINDING_CODES } from '../../src/model/finding.ts';
import { outcomeOf } from '../../src/model/outcome.ts';
import { rootsOf } from '../../src/report/causes.ts';
import type { ReportNamespace } from '../../src/report/report-json.ts';
import { chainClauses } from '../../src/report/sentences.ts';
import { toPlain } from '../../src/report/words.ts';
import type { Client } from '../cluster/client.ts';
import { differences } from '../cluster/compare.ts';
import type { Expectation, Scenario } from '../cluster/scenario.ts';
import { SCENARIOS } from '../cluster/scenarios/index.ts';
import { World } from '../cluster/world.ts';
import { namespaceResult } from '../stub/results.ts';
import {
  expectationIn,
  type RecordedLooks,
  readRecordedLook,
  readRecordedLooks,
} from './recorded-looks.ts';

/**
 * What the gate saw on a real control plane, diagnosed again. What it must say is the scenario's own
 * expectation, so that the fast test and the slow one cannot disagree, or stands in the recording.
 */
const RECORDED = readRecordedLooks();

function scenarioOf(looks: RecordedLooks): Pick<Scenario, 'expect'> {
  const found = SCENARIOS.find(({ id }) => id === looks.scenario);
  return found ?? { expect: () => expectationIn(looks) as Expectation };
}

function diagnosisOf({ before, now }: RecordedLooks): Diagnosis {
  return diagnose(now, before);
}

function reportOf(looks: RecordedLooks): ReportNamespace {
  const { namespace } = looks.now;
  const diagnosis = diagnosisOf(looks);
  const { findings, blockers, rootCauses, deadlocks, queued, notInspected } = diagnosis;
  return {
    name: namespace.name,
    uid: namespace.uid,
    outcome: outcomeOf(diagnosis),
    elapsedSeconds: 0,
    deletionTimestamp: namespace.deletionTimestamp ?? null,
    findings,
    blockers,
    rootCauses,
    deadlocks,
    queued,
    notInspected,
    conditions: namespace.conditions,
    timeline: [],
    forced: null,
    leftBehind: [],
  };
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
        read.ok && read.value.total > 0 && read.value.total === read.value.queued
          ? [type.kind]
          : [],
      );
      const held = diagnosis.findings.filter(({ code }) => code === 'object-finalizer');
      expect(held.filter(({ subject }) => waiting.includes(subject.kind))).toEqual([]);
      expect(diagnosisOf(looks)).toEqual(diagnosis);
    },
  );
});

/** Codes that no control plane without nodes, and no recording, has shown yet: a gap to be seen. */
const WITHOUT_RECORDING: readonly string[] = [];

test('every finding code occurs in a recording, but for those that are listed', () => {
  const seen = new Set(
    RECORDED.flatMap((looks) => diagnosisOf(looks).findings).map(({ code }) => code),
  );
  expect(FINDING_CODES.filter((code) => !seen.has(code))).toEqual(WITHOUT_RECORDING);
});

test('recordings contain nothing of the machine that made them', () => {
  for (const looks of RECORDED) {
    const text = JSON.stringify(looks);
    expect(text, looks.scenario).not.toMatch(
      /127\.0\.0\.1|\/tmp\/|\/root\/|\/home\/|eyJ[\w-]{10,}/,
    );
  }
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

const MAX_WORDS = 30;

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
      .filter((text) => text.split(/\s+/).length > MAX_WORDS)
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

test('the controller of the owner may undo changes by hand, and is named', () => {
  const { now, before } = readRecordedLook('S3');
  const { deployments } = now.cluster;
  for (const workload of deployments?.ok ? deployments.value : []) {
    workload.owner = {
      apiVersion: 'operators.example.com/v1',
      kind: 'Subscription',
      name: 'widgets',
      uid: '5d0f',
      controller: true,
    };
  }
  const remedies = diagnose(now, before).findings.flatMap((finding) => finding.remedies);

  const wake = remedies.find(({ text }) => text.startsWith('Scale Deployment'));
  expect(wake?.text).toMatch(/\. Subscription widgets may set that back/);
});

test('a Lease with another name belongs to the program that wrote it', () => {
  const { now, before } = readRecordedLook('not-leading');
  const { leases } = now.cluster;
  const own = (leases?.ok ? leases.value : []).find(({ name }) => name === 'widget-operator');
  if (own === undefined) throw new Error('no Lease was recorded');
  own.name = 'csi-example-com';
  const [unknown, ...known] = ['other-operator', 'widget-operator'].map((writer) => {
    own.writers = [writer];
    const { findings } = diagnose(now, before);
    return findings.find(({ code }) => code.startsWith('owner-'))?.message;
  });

  expect(unknown).not.toContain('Lease');
  for (const message of known) {
    expect(message).toContain('may have no leader: Lease widget-system/csi-example-com');
  }
});

/** Every command that the diagnosis prints of an operator that has lost its right, after the cluster was changed. */
function commandsOf(scenario: string, change: (looks: RecordedLooks) => void): string[] {
  const looks = readRecordedLook(scenario);
  change(looks);
  const found = diagnose(looks.now, looks.before).findings;
  return found.flatMap(({ remedies }) => remedies.flatMap(({ command }) => command ?? []));
}

function workloadOf({ now: { cluster } }: RecordedLooks) {
  const listed = cluster.deployments?.ok ? cluster.deployments.value : [];
  const found = listed.find(({ name }) => name === 'widget-operator');
  if (found === undefined) throw new Error('the operator was not recorded');
  return found;
}

const RESTARTS = /rollout restart/;

describe('a terminating owner is not restarted', () => {
  const DELETED = '2026-01-01T00:00:00Z';
  const ways: Record<string, (looks: RecordedLooks) => void> = {
    'the workload is being deleted': (looks) => {
      workloadOf(looks).deletionTimestamp = DELETED;
    },
    'its namespace is being deleted': (looks) => {
      const { namespaces } = looks.now.cluster;
      const { namespace } = workloadOf(looks);
      for (const one of namespaces?.ok ? namespaces.value : []) {
        if (one.name === namespace) one.deletionTimestamp = DELETED;
      }
    },
  };
  for (const scenario of ['S40', 'lost-for-two-objects']) {
    test.each(Object.entries(ways))(`${scenario}: %s`, (_, change) => {
      expect(commandsOf(scenario, () => {}).some((one) => RESTARTS.test(one))).toBe(true);
      expect(commandsOf(scenario, change).filter((one) => RESTARTS.test(one))).toEqual([]);
    });
  }
});

describe('a remedy grants a permission', () => {
  const granted = (scenario: string, change: (looks: RecordedLooks) => void = () => {}): string =>
    commandsOf(scenario, change).find((one) => one.includes('create clusterrole ')) ?? '';

  test('for the held objects, if all of them are known', () => {
    expect(granted('lost-for-two-objects')).toMatch(/--resource-name=db --resource-name=second /);
    const many = granted('lost-for-two-objects', ({ now }) => {
      for (const { read } of now.content) {
        for (const group of read.ok ? read.value.terminating : []) group.count = 200;
      }
    });
    expect(many).toMatch(/--resource=widgets\.example\.com /);
    expect(many).not.toContain('--resource-name');
  });

  test('for all objects, if the verb is list', () => {
    const granting = granted('S86-role');
    expect(granting).toContain("'--verb=list,watch,update,patch'");
    expect(granting).not.toContain('--resource-name');
  });
});
