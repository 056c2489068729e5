import { formatDuration } from '../base/time.ts';
import type { Outcome, Verdict } from '../model/outcome.ts';
import type { NamespaceResult, RunResult } from '../model/result.ts';
import { name, type Words } from './words.ts';

/** One sign per outcome, always beside words that say the same. */
export function markOf(outcome: Outcome, verdict: Verdict): string {
  switch (outcome) {
    case 'clear':
    case 'deleted':
      return '✅';
    case 'not-found':
      return verdict === 'fail' ? '🔴' : '✅';
    case 'recreated':
    case 'forced':
    case 'progressing':
    case 'inconclusive':
      return '🟡';
    case 'not-terminating':
    case 'would-hang':
    case 'stuck':
      return '🔴';
    case 'cancelled':
      return '⚪';
  }
}

/** Where there is no namespace to tell about. */
export function nothingToTell({ outcome }: Pick<RunResult, 'outcome'>): string {
  return outcome === 'cancelled'
    ? 'the run was cancelled before any namespace was read'
    : 'no namespace matched the selector';
}

/** What became of the namespace and how long it took, without its name: "stuck: not gone after 5m". */
export function headlineWords(namespace: NamespaceResult, run: RunResult): Words {
  const subject: Words = ['Namespace ', name(namespace.name)];
  const took = formatDuration(namespace.elapsedMs);
  switch (namespace.outcome) {
    case 'clear':
      return [...subject, ' could be deleted: nothing that could be seen would hold it'];
    case 'would-hang':
      return [...subject, ' would hang if it were deleted now'];
    case 'deleted':
      return [...subject, ` is gone (${took})`];
    case 'not-found':
      return [...subject, ' does not exist'];
    case 'recreated':
      return [...subject, ` is gone (${took}), and a new namespace has its name`];
    case 'forced':
      return [...subject, ` is gone (${took}), because the gate force-finalized it`];
    case 'progressing':
      return [...subject, ` is still going away: ${notGone(namespace, run)}`];
    case 'not-terminating':
      return ['Nobody has asked for the deletion of namespace ', name(namespace.name)];
    case 'inconclusive':
      return [...subject, ` is ${notGone(namespace, run)}, and we could not see why`];
    case 'stuck':
      return [...subject, ` is stuck: ${notGone(namespace, run)}`];
    case 'cancelled':
      return [...subject, ` was still there when the run was cancelled (after ${took})`];
  }
}

/** Without waiting (`--now`) there is no time of ours to tell; the age of the deletion is what counts. */
function notGone(namespace: NamespaceResult, run: RunResult): string {
  if (run.timeoutMs > 0) return `not gone after ${formatDuration(namespace.elapsedMs)}`;
  const age = terminatingFor(namespace, run);
  return age === undefined ? 'not gone' : `terminating for ${formatDuration(age)}`;
}

/** "Kubernetes 1.36.3". */
export function clusterWords(run: RunResult): Words {
  return ['Kubernetes ', name(run.cluster.version.replace(/^v(?=\d)/, ''))];
}

/** How long ago the deletion was asked for; undefined when that cannot be told. */
export function terminatingFor(namespace: NamespaceResult, run: RunResult): number | undefined {
  const since = Date.parse(namespace.deletionTimestamp ?? '');
  const now = Date.parse(run.finishedAt);
  return Number.isNaN(since) || Number.isNaN(now) ? undefined : Math.max(0, now - since);
}

/** The outcome as it follows the name in one line: "is stuck", "is gone after 38 s". */
export function stateWords(namespace: NamespaceResult): string {
  const took = formatDuration(namespace.elapsedMs);
  switch (namespace.outcome) {
    case 'clear':
      return 'could be deleted';
    case 'would-hang':
      return 'would hang if it were deleted now';
    case 'deleted':
      return `is gone after ${took}`;
    case 'not-found':
      return 'does not exist';
    case 'recreated':
      return `is gone after ${took}; a new namespace has the name`;
    case 'forced':
      return `is gone after ${took}, force-finalized by the gate`;
    case 'progressing':
      return 'is still going away';
    case 'not-terminating':
      return 'is there, and nobody has asked for its deletion';
    case 'inconclusive':
      return 'is not gone, and we could not see why';
    case 'stuck':
      return 'is stuck';
    case 'cancelled':
      return `was still there when the run was cancelled, after ${took}`;
  }
}
