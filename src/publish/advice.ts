import { upperFirst } from '../base/text.ts';
import type { ApiFailure } from './host-api.ts';
import { type Host, readOnlyReason, type WorkflowRun } from './workflow-run.ts';

/** A message about a comment that could not be written. */
interface Trouble {
  level: 'warning' | 'notice';
  message: string;
  /** Lines to add to the workflow, as they have to be written. */
  fix: readonly string[];
}

const PERMISSION_LINES = ['permissions:', '  pull-requests: write'];
const NEEDED_RIGHT =
  'The token may not write here. Add these two lines to the job. A token of your own needs "Pull requests: Read and write" instead (classic: "repo"; Gitea and Forgejo: "write:issue" and "read:repository"):';

/** Returns a sentence with the attempt, the answer and the fix; none if no comment was expected. */
export function commentTrouble(
  tried: string,
  { kind, message, status }: ApiFailure,
  run: WorkflowRun,
): Trouble | undefined {
  const what = `${tried}: ${message.replace(/\.$/, '')}`;
  const warning = (advice: string, fix: readonly string[] = []): Trouble => ({
    level: 'warning',
    message: `${what}. ${advice}`,
    fix,
  });
  const isRefused = kind === 'forbidden' || kind === 'not-found';
  // The host says that the repository is archived, or the conversation locked or deleted: no permission helps.
  if (isRefused && status !== 410 && !/archived|\block/i.test(message)) {
    const reason = readOnlyReason(run);
    if (reason === undefined) return warning(NEEDED_RIGHT, PERMISSION_LINES);
    return { level: 'notice', message: `${what}. ${reason}; ${reportPlace(run.host)}.`, fix: [] };
  }
  if (kind === 'aborted') return undefined;
  if (kind === 'unauthorized') {
    return warning('The input "github-token" is no valid token, or it has expired.');
  }
  if (kind === 'throttled') {
    return warning('The rate limit is used up; the next run writes the comment.');
  }
  return warning(`${upperFirst(reportPlace(run.host))}.`);
}

/** Returns where the report can be read without the comment. */
export function reportPlace({ hasSummary }: Host): string {
  return hasSummary ? 'the job summary has the report' : 'the step log has the report';
}
