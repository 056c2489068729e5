import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Finding } from '../../src/model/finding.ts';
import type { ReportNamespace } from '../../src/report/report-json.ts';
import { endOf, mutationsBy } from './audit.ts';
import { type Cluster, Clusters, foreignKubeconfig, skipReason } from './clusters.ts';
import { findingText } from './compare.ts';
import { ofThisPart } from './core.ts';
import { dropBundle, runGate, theBundle } from './run-gate.ts';
import { LIMIT_MS, TIMEOUT } from './run-scenario.ts';
import type { Scenario } from './scenario.ts';
import { EVERYDAY } from './scenarios/everyday.ts';
import { SCENARIOS } from './scenarios/index.ts';
import { World } from './world.ts';

/**
 * Every situation whose cause exists before the deletion is first foreseen and then lived through, in one
 * test: what was predicted is compared with what the explanation says afterwards.
 */
const UNSEEN: Record<string, string> = {
  S46: 'its owner puts the finalizer back only when it is being deleted',
  'finalize-denied': 'admission is asked about the end of a namespace when it is empty',
  'SEED-5a': 'a kubelet that reports itself as ready does not confirm',
  'unmount-fails': 'a kubelet that reports itself as ready does not confirm',
  'SEED-4d-500': 'an extension API is never sent a dry run: it may ignore that it is one',
  unexplained: 'nothing explains it afterwards either',
  'behind-status': 'the same',
  'no-node': 'nothing shows that nobody collects pods of nodes that do not exist',
  'week-of-grace': 'how long containers take to end is not known before',
};

/** Owners that say only when they try that they fail. */
const FAILS_LATER = [
  ...[
    'gone-in-words',
    'SEED-5c',
    'between-deletions',
    'escape-ack',
    'escape-carvel',
    'gone-outside',
  ],
  ...EVERYDAY.filter(({ beginsLater }) => beginsLater).map(({ id }) => id),
];

beforeAll(theBundle);
afterAll(dropBundle);

const chosen = ofThisPart(
  SCENARIOS.filter(
    (scenario) =>
      scenario.delete !== false &&
      scenario.needs === undefined &&
      (foreignKubeconfig() === undefined || !scenario.own) &&
      !(scenario.id in UNSEEN),
  ),
);

describe.concurrent('predicted = happened', () => {
  const clusters = new Clusters();
  afterAll(() => clusters.stop());
  for (const scenario of chosen) {
    const title = `${scenario.id}: ${scenario.title}`;
    const reason = skipReason(scenario);
    if (reason !== undefined) test.skip(`${title} (skipped: ${reason})`);
    else {
      test(title, () =>
        clusters.use(async (cluster) => {
          expect(await live(scenario, cluster)).toEqual([]);
        }, scenario.own),
      );
    }
  }
});

async function live(scenario: Scenario, cluster: Cluster): Promise<string[]> {
  const world = new World({
    ...cluster,
    namespace: scenario.namespace ?? `preview-${scenario.id.toLowerCase()}`,
  });
  const identity = scenario.identity ?? 'teardown-forecaster';
  const look = async (inputs: Record<string, string>): Promise<ReportNamespace | undefined> => {
    const run = await runGate(
      {
        namespace: world.namespace,
        kubeconfig: await world.kubeconfig(identity),
        comment: 'off',
        ...inputs,
      },
      { limitMs: LIMIT_MS },
    );
    return run.report?.namespaces.find(({ name }) => name === world.namespace);
  };
  try {
    const from = world.plane ? await endOf(world.plane.auditLog) : 0;
    await scenario.setUp(world);
    if (scenario.id === 'S44') await world.leaderLeaseExpires();
    const predicted = await look({ forecast: 'true' });
    const made = world.plane ? await mutationsBy(world.plane.auditLog, identity, { from }) : [];
    const ask = scenario.delete;
    await (typeof ask === 'function' ? ask(world) : world.deleteNamespace());
    await (scenario.settle ?? ((there: World) => there.settled()))(world);
    const happened = await look({ timeout: TIMEOUT });
    return [
      ...made.map((one) => `the forecast changed something: ${one}`),
      ...compare(predicted, happened, FAILS_LATER.includes(scenario.id)),
    ];
  } finally {
    await world.end();
  }
}

/** When the gate comes late, nothing shows any more which workload it was. */
function textOf(finding: Finding): string {
  return finding.code === 'owner-missing'
    ? `owner-missing ${finding.finalizer}`
    : findingText(finding);
}

function compare(
  predicted: ReportNamespace | undefined,
  happened: ReportNamespace | undefined,
  failsLater: boolean,
): string[] {
  if (predicted === undefined || happened === undefined) return ['there is no report'];
  const roots = ({ findings, rootCauses }: ReportNamespace): string[] =>
    findings
      .filter(({ id }) => rootCauses.includes(id))
      .map(textOf)
      .sort();
  const before = roots(predicted);
  // A running owner is presumed to do its work: that it does not, something may show before, or nothing.
  const after = roots(happened).filter(
    (text) =>
      before.includes(text) ||
      !(text.startsWith('owner-running') || (failsLater && text.startsWith('owner-failing'))),
  );
  const isSlow = happened.outcome === 'stuck' && after.length === 0;
  // An owner outside of the cluster is not visible.
  const open = predicted.findings.filter(
    ({ code, certainty }) =>
      certainty === 'unknown' || (code === 'owner-missing' && certainty === 'likely'),
  );
  const questions = open.filter(({ certainty }) => certainty === 'unknown').map(textOf);
  const wanted = {
    stuck: isSlow
      ? ['clear', 'inconclusive']
      : open.length > 0
        ? ['would-hang', 'inconclusive']
        : ['would-hang'],
    inconclusive: ['inconclusive'],
  }[happened.outcome as string] ?? ['clear'];
  const causes = [
    ...before
      .filter((text) => !after.includes(text) && !questions.includes(text))
      .map((text) => `predicted, and did not happen: ${text}`),
    ...after
      .filter((text) => !before.includes(text) && !text.startsWith('pod-grace-period'))
      .map((text) => `happened, and was not predicted: ${text}`),
  ];
  const problems = [
    ...causes,
    ...(wanted.includes(predicted.outcome)
      ? []
      : [`predicted ${predicted.outcome}, became ${happened.outcome}`]),
  ];
  return problems.length === 0
    ? []
    : [
        ...problems,
        ...predicted.findings.map((f) => `  predicted: ${findingText(f)}: ${f.message}`),
        ...predicted.notInspected.map(({ what, reason }) => `  not inspected: ${what}: ${reason}`),
      ];
}
