import { OUTCOMES } from '../model/outcome.ts';
import type { NamespaceResult } from '../model/result.ts';

const VERDICTS = ['pass', 'warn', 'fail'] as const;

/** What failed first, then by how bad the outcome is, then as given. */
export function worstFirst(namespaces: readonly NamespaceResult[]): NamespaceResult[] {
  const rank = ({ verdict, outcome }: NamespaceResult): number =>
    VERDICTS.indexOf(verdict) * OUTCOMES.length + OUTCOMES.indexOf(outcome);
  return [...namespaces].sort((a, b) => rank(b) - rank(a));
}
