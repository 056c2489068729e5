import type { NamespaceResult, RunResult } from '../model/result.ts';
import { type Narrative, narrate } from './narrative.ts';
import { worstFirst } from './order.ts';
import { sameCauseAs } from './shared-cause.ts';

/** A run as it is told: every namespace with its narrative, the worst first. */
export interface Story {
  run: RunResult;
  namespaces: Told[];
}

export interface Told {
  result: NamespaceResult;
  narrative: Narrative;
  /** An earlier namespace that waits for exactly the same. */
  sameAs: NamespaceResult | undefined;
}

export function tellStory(run: RunResult): Story {
  const ordered = worstFirst(run.namespaces);
  const same = sameCauseAs(ordered);
  return {
    run,
    namespaces: ordered.map((result) => ({
      result,
      narrative: narrate(result, run),
      sameAs: same.get(result),
    })),
  };
}
