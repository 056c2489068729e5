import { diagnose } from '../../src/diagnose/diagnose.ts';
import { readRecordedLooks } from '../unit/recorded-looks.ts';
import type { Scenario } from './scenario.ts';

/** By what recorded hangs show: for every finding code the first scenario in which it occurs, those on a shared cluster first. */
export function onePerCode(scenarios: readonly Scenario[]): Scenario[] {
  const looksOf = Map.groupBy(readRecordedLooks(), ({ scenario }) => scenario);
  const seen = new Set<string>();
  return scenarios
    .toSorted((a, b) => Number(Boolean(a.own)) - Number(Boolean(b.own)))
    .filter(({ id }) => {
      const codes = (looksOf.get(id) ?? []).flatMap(({ before, now }) =>
        diagnose(now, before).findings.map(({ code }) => code),
      );
      const isNew = codes.some((code) => !seen.has(code));
      for (const code of codes) seen.add(code);
      return isNew;
    });
}
