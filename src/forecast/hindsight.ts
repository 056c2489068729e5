import { type Diagnosis, type Finding, findingsOf } from '../model/finding.ts';
import type { ForecastBasis, Hindsight, NamespaceResult } from '../model/result.ts';

/** The report of an earlier forecast about one namespace. */
export interface EarlierForecast {
  /** Time of the forecast, ISO 8601. */
  at: string;
  uid: string;
  outcome: string;
  findings: readonly Finding[];
  rootCauses: readonly string[];
  basis?: ForecastBasis | undefined;
}

/** Compares a forecast with the later outcome of the same namespace. */
export function hindsightOf(
  { uid, outcome, diagnosis, deletions = [] }: NamespaceResult,
  forecast: EarlierForecast,
): Hindsight | undefined {
  const isHeld = ['stuck', 'inconclusive', 'progressing', 'forced'].includes(outcome);
  if (!isHeld && outcome !== 'deleted' && outcome !== 'recreated') return undefined;
  const { at, outcome: said } = forecast;
  const judge = (verdict: Hindsight['verdict'], because: string): Hindsight => {
    return { at, outcome: said, verdict, because };
  };
  if (forecast.uid !== uid) {
    const which = `another namespace of this name (UID ${forecast.uid})`;
    return judge('not-comparable', `the forecast is about ${which}`);
  }
  const named = forecast.findings.filter(({ id }) => forecast.rootCauses.includes(id));
  if (!isHeld) {
    const then = 'and the namespace was deleted';
    if (said === 'clear') return judge('foreseen', `it said clear, ${then}`);
    if (deletions.length > 0) {
      return judge('not-comparable', 'what would have held it was deleted first, in order');
    }
    return said === 'would-hang'
      ? judge('not-foreseen', `it said would-hang (${findingTexts(named)}), ${then}`)
      : judge('open', `it left the question open, ${then}`);
  }
  const all = diagnosis?.findings ?? [];
  const shared = named.find((root) => all.some((one) => isSameCause(one, root)));
  return shared === undefined
    ? judge('not-foreseen', whyUnforeseen(named, diagnosis, forecast))
    : judge(said === 'would-hang' ? 'foreseen' : 'open', `it named ${findingTexts([shared])}`);
}

/**
 * Reports whether two findings are about the same cause. An owner that was unknown before may have another code
 * now.
 */
function isSameCause(one: Finding, root: Finding): boolean {
  if (one.id === root.id) return true;
  return one.finalizer === undefined
    ? one.code === root.code && one.subject.name === root.subject.name
    : one.finalizer === root.finalizer;
}

function whyUnforeseen(
  named: readonly Finding[],
  diagnosis: Diagnosis | undefined,
  { basis, outcome }: EarlierForecast,
): string {
  const found = diagnosis === undefined ? [] : findingsOf(diagnosis, diagnosis.rootCauses);
  const texts = findingTexts(found);
  if (outcome === 'would-hang')
    return `it named ${findingTexts(named)}, and what holds it now is ${texts}`;
  const finalizers = [...found, ...(diagnosis?.findings ?? [])].flatMap(
    ({ finalizer }) => finalizer ?? [],
  );
  const fresh = finalizers.find((name) => basis?.finalizers.includes(name) === false);
  if (fresh !== undefined) return `nothing in the namespace had finalizer ${fresh} at that time`;
  const owner = found.find(({ code }) => code.startsWith('owner-'))?.subject;
  const expected = basis?.owners.find((one) => owner && one.owner.endsWith(`/${owner.name}`));
  if (expected !== undefined) return `it expected ${expected.owner} to act: ${expected.evidence}`;
  if (outcome === 'inconclusive') return `it left other questions open; now it is ${texts}`;
  return found.length === 0
    ? 'nothing explains the hang now either'
    : `nothing showed ${texts} at that time`;
}

function findingTexts(findings: readonly Finding[]): string {
  const texts = findings.map(({ code, subject }) => `${code} (${subject.kind} ${subject.name})`);
  return texts.slice(0, 3).join(', ') || 'no cause';
}
