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

/** In so many runs of `sample`, a day apart, each scenario has its turn; `SCENARIO_PARTS` says another number. */
const PARTS = Number(process.env['SCENARIO_PARTS'] ?? 12);

/**
 * One for every finding code, what the versions of Kubernetes show in different ways, and a part of the others, each
 * day another one.
 */
export function sample(scenarios: readonly Scenario[], nowMs = Date.now()): Scenario[] {
  const always = new Set(onePerCode(scenarios));
  const part = Math.floor(nowMs / 86_400_000) % PARTS;
  return scenarios.filter((one, index) => one.differs || always.has(one) || index % PARTS === part);
}
