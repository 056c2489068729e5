import type { View } from '../draft.ts';

export interface FailingGroup {
  group: string;
  version: string;
  /** What was seen, one sentence per source. */
  reasons: string[];
}

/**
 * Group-versions that cannot be discovered now. Our own discovery decides; the namespace's condition,
 * up to a minute old, is added as evidence, and stands alone only when discovery could not be read.
 */
export function failingGroups(view: View): FailingGroup[] {
  const { discovery } = view.now;
  const said = view.conditions.discoveryFailures;
  const found: FailingGroup[] = discovery.ok
    ? discovery.value.failedGroups.map(({ group, version, reason }) => ({
        group,
        version,
        reasons: [`discovery of ${group}/${version}: ${reason}`],
      }))
    : said.map(({ group, version }) => ({ group, version, reasons: [] }));
  for (const failing of found) {
    const named = said.find(
      ({ group, version }) => group === failing.group && version === failing.version,
    );
    if (named !== undefined) {
      failing.reasons.push(
        `the namespace's condition NamespaceDeletionDiscoveryFailure: ${named.error}`,
      );
    }
  }
  return found;
}
