import { upperFirst } from '../base/text.ts';
import type { ApiFailure } from './host-api.ts';
import { readOnlyReason, type WorkflowRun } from './workflow-run.ts';

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

/** The words of GitHub, Gitea and Forgejo for a permission that the token lacks. */
const PERMISSION = /not accessible by|must have|permission|scope|not granted/i;

/**
 * Returns a sentence with the attempt, the answer and the fix; none if no comment was expected. `place`: where the
 * report can be read instead.
 */
export function commentTrouble(
  tried: string,
  { kind, message, status }: ApiFailure,
  run: WorkflowRun,
  place: string,
): Trouble | undefined {
  const what = `${tried}: ${message.replace(/\.$/, '')}`;
  const warning = (advice: string, fix: readonly string[] = []): Trouble => ({
    level: 'warning',
    message: `${what}. ${advice}`,
    fix,
  });
  // A host hides with 404 what a token may not see. A 403 has many other reasons, against which no permission helps: a
  // locked conversation, single sign-on, the address of the runner, a proxy.
  const lacksPermission =
    kind === 'not-found' ? status !== 410 : kind === 'forbidden' && PERMISSION.test(message);
  if (lacksPermission) {
    const reason = readOnlyReason(run);
    if (reason === undefined) return warning(NEEDED_RIGHT, PERMISSION_LINES);
    return { level: 'notice', message: `${what}. ${reason}; ${place}.`, fix: [] };
  }
  if (kind === 'aborted') return undefined;
  if (kind === 'unauthorized') {
    return warning('The input "github-token" is no valid token, or it has expired.');
  }
  if (kind === 'throttled') {
    return warning('The rate limit is used up; the next run writes the comment.');
  }
  return warning(`${upperFirst(place)}.`);
}
