import type { FindingCode } from '../../src/model/finding.ts';
import type { Scenario } from './scenario.ts';

/** For every finding code a scenario that shows it: .ci/run runs these, and one that simply goes. */
export const CORE: Readonly<Record<FindingCode, string>> = {
  'namespace-controller-inactive': 'S44',
  'apiservice-unavailable': 'S7',
  'discovery-failed': 'S11',
  'conversion-webhook-failing': 'S13',
  'storage-unreadable': 'storage-unreadable',
  'api-failing': 'SEED-4d-500',
  'pod-node-unavailable': 'S28',
  'pod-not-confirmed': 'SEED-5a',
  'admission-webhook-failing': 'S15',
  'admission-denied': 'S21',
  'deletion-forbidden': 'deletion-forbidden',
  'owner-failing': 'SEED-5c',
  'owner-missing': 'S4',
  'owner-scaled-to-zero': 'S3',
  'owner-not-ready': 'owner-not-ready',
  'owner-not-acting': 'paused',
  'owner-unknown': 'S1',
  'owner-running': 'S61-alive',
  'namespace-finalizer': 'S34',
  'namespace-spec-finalizer': 'S37a',
  'object-finalizer': 'S1',
  'volume-in-use': 'S25a',
  'crd-terminating': 'crd-terminating',
  'pod-grace-period': 'S30',
  'content-deleting': 'S43',
  unexplained: 'unexplained',
};
const IDS = new Set([...Object.values(CORE), 'deleted-by-gate']);

export function isCore({ id }: Scenario): boolean {
  return IDS.has(id);
}

/** Forecasts of recordings judge all codes: live, some show that the recordings are still true. */
const FORESEEN = new Set(['S3', 'S4', 'S7', 'S15', 'S21', 'S28']);

export function isCoreForecast({ id }: Scenario): boolean {
  return FORESEEN.has(id);
}

/** `SCENARIO_PART=2/6`: the second of six parts, so that a run that was stopped goes on where it was. */
export function ofThisPart(
  scenarios: readonly Scenario[],
  part = process.env['SCENARIO_PART'] ?? '1/1',
): Scenario[] {
  const [mine, all] = part.split('/').map(Number);
  if (!mine || !all || mine > all) throw new Error(`SCENARIO_PART is "${part}"; use "2/6"`);
  return scenarios.filter((_, index) => index % all === mine - 1);
}
