import type { ReadFailure } from '../model/read.ts';

/** What to tell when a comment could not be written. */
export interface Trouble {
  level: 'warning' | 'notice' | 'silent';
  message: string;
  /** Lines to add somewhere, as they are to be written. */
  fix: readonly string[];
}

const PERMISSION_LINES = ['permissions:', '  pull-requests: write'];

/**
 * One sentence: what was tried, what came back, what helps. `readOnlyReason` says why the token cannot
 * write whatever the workflow grants; then there is nothing to mend, and it is no warning.
 */
export function commentTrouble(
  tried: string,
  failure: ReadFailure,
  readOnlyReason: string | undefined,
): Trouble {
  const what = `${tried}: ${failure.message.replace(/\.$/, '')}`;
  const warning = (advice: string, fix: readonly string[] = []): Trouble => ({
    level: 'warning',
    message: `${what}. ${advice}`,
    fix,
  });
  switch (failure.kind) {
    case 'forbidden':
    case 'not-found':
      if (/\block/i.test(failure.message)) {
        return warning('The conversation is locked; unlock it to get comments.');
      }
      if (readOnlyReason !== undefined) {
        return {
          level: 'notice',
          message: `${what}. ${readOnlyReason}; the job summary has the report.`,
          fix: [],
        };
      }
      return warning(
        'The token lacks the permission "pull-requests: write"; add these two lines to the job:',
        PERMISSION_LINES,
      );
    case 'unauthorized':
      return warning('The input "github-token" is no valid token, or it has expired.');
    case 'throttled':
      return warning('The rate limit is used up; the next run writes the comment.');
    case 'aborted':
      return { level: 'silent', message: what, fix: [] };
    case 'conflict':
    case 'invalid':
    case 'server-error':
    case 'timeout':
    case 'network':
    case 'unreadable':
      return warning('The job summary has the report.');
  }
}
