import type { Finding } from '../../src/model/finding.ts';
import type { ReportNamespace } from '../../src/report/report-json.ts';
import { endOf, mutationsBy } from './audit.ts';
import { type Cluster, foreignKubeconfig } from './clusters.ts';
import { findingText } from './compare.ts';
import { isCoreForecast, ofThisPart } from './core.ts';
import { eachScenario } from './each-scenario.ts';
import { runGate } from './run-gate.ts';
import { askAndSettle, LIMIT_MS, TIMEOUT, worldOf } from './run-scenario.ts';
import type { Scenario } from './scenario.ts';
import { EVERYDAY } from './scenarios/everyday.ts';
import { SCENARIOS } from './scenarios/index.ts';

/**
 * Every situation whose cause exists before the deletion is first foreseen and then lived through, in one
 * test: what was predicted is compared with what the explanation says afterwards.
 */
const UNSEEN: Record<string, string> = {
  S46: 'its owner puts the finalizer back only when it is being deleted',
  'SEED-5a': 'a kubelet that reports itself as ready does not confirm',
  'SEED-4d-500': 'an extension API is never sent a dry run: it may ignore that it is one',
  unexplained: 'nothing explains it afterwards either',
};

/** Owners that say only when they try that they fail. */
const FAILS_LATER = new Set([
  'SEED-5c',
  ...EVERYDAY.filter(({ beginsLater }) => beginsLater).map(({ id }) => id),
]);

const isForeseeable = ({ id, delete: asked, needs, own }: Scenario): boolean =>
  asked !== false && !needs && !(id in UNSEEN) && (foreignKubeconfig() === undefined || !own);

eachScenario(
  ofThisPart(SCENARIOS.filter(isForeseeable)),
  (scenario, inCluster) => inCluster((cluster) => live(scenario, cluster)),
  { isInCore: isCoreForecast },
);

async function live(scenario: Scenario, cluster: Cluster): Promise<string[]> {
  const world = worldOf(scenario, cluster);
  const identity = scenario.identity ?? 'teardown-forecaster';
  const { namespace, plane } = world;
  const look = async (inputs: Record<string, string>): Promise<ReportNamespace> => {
    const kubeconfig = await world.kubeconfig(identity);
    const all = { namespace, kubeconfig, comment: 'off', ...inputs };
    const { report, stderr } = await runGate(all, { limitMs: LIMIT_MS });
    const found = report?.namespaces.find(({ name }) => name === namespace);
    if (found === undefined) throw new Error(`there is no report: ${stderr}`);
    return found;
  };
  try {
    await scenario.setUp(world);
    if (scenario.id === 'S44') await world.leaderLeaseExpires();
    const from = plane ? await endOf(plane.auditLog) : 0;
    const predicted = await look({ forecast: 'true' });
    const made = plane ? await mutationsBy(plane.auditLog, identity, { from }) : [];
    await askAndSettle(scenario, world);
    const happened = await look({ timeout: TIMEOUT });
    return [
      ...made.map((one) => `the forecast changed something: ${one}`),
      ...differences(predicted, happened, FAILS_LATER.has(scenario.id)),
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

const rootsOf = ({ findings, rootCauses }: ReportNamespace): string[] =>
  findings.filter(({ id }) => rootCauses.includes(id)).map(textOf);

function differences(
  predicted: ReportNamespace,
  happened: ReportNamespace,
  failsLater: boolean,
): string[] {
  const before = rootsOf(predicted);
  // A running owner is presumed to do its work: that it does not, something may show before, or nothing.
  const after = rootsOf(happened).filter(
    (text) =>
      before.includes(text) ||
      !(text.startsWith('owner-running') || (failsLater && text.startsWith('owner-failing'))),
  );
  // An owner outside of the cluster is not visible.
  const open = predicted.findings.filter(
    ({ code, certainty }) =>
      certainty === 'unknown' || (code === 'owner-missing' && certainty === 'likely'),
  );
  const questions = open.filter(({ certainty }) => certainty === 'unknown').map(textOf);
  const isHang = happened.outcome === 'stuck' && after.length > 0;
  const wanted = {
    stuck: isHang
      ? ['would-hang', ...(open.length > 0 ? ['inconclusive'] : [])]
      : ['clear', 'inconclusive'],
    inconclusive: ['inconclusive'],
  }[happened.outcome as string] ?? ['clear'];
  const problems = [
    ...before
      .filter((text) => !after.includes(text) && !questions.includes(text))
      .map((text) => `predicted, and did not happen: ${text}`),
    ...after
      .filter((text) => !before.includes(text) && !text.startsWith('pod-grace-period'))
      .map((text) => `happened, and was not predicted: ${text}`),
    ...(wanted.includes(predicted.outcome)
      ? []
      : [`predicted ${predicted.outcome}, became ${happened.outcome}`]),
  ];
  if (problems.length === 0) return [];
  return [
    ...problems,
    ...predicted.findings.map((f) => `  predicted: ${findingText(f)}: ${f.message}`),
    ...predicted.notInspected.map(({ what, reason }) => `  not inspected: ${what}: ${reason}`),
  ];
}
