import { upperFirst } from '../base/text.ts';
import type { ApiFailure } from './host-api.ts';
import { type Host, readOnlyReason, type WorkflowRun } from './workflow-run.ts';

/** A message about a comment that could not be written. */
interface Trouble {
  level: 'warning' | 'notice';
  message: string;
  /** Lines to add to the workflow or the token, as they have to be written. */
  fix: readonly string[];
}

const PERMISSION_LINES = ['permissions:', '  pull-requests: write'];

/** Returns a sentence with the attempt, the answer and the fix; none if no comment was expected. */
export function commentTrouble(
  tried: string,
  failure: ApiFailure,
  run: WorkflowRun,
  token: string,
): Trouble | undefined {
  const { host } = run;
  const what = `${tried}: ${failure.message.replace(/\.$/, '')}`;
  const warning = (advice: string, fix: readonly string[] = []): Trouble => ({
    level: 'warning',
    message: `${what}. ${advice}`,
    fix,
  });
  switch (failure.kind) {
    case 'forbidden':
    case 'not-found': {
      if (/archived/i.test(failure.message)) {
        return warning('The repository is archived: it accepts no comments.');
      }
      if (/\block/i.test(failure.message)) {
        return warning('The conversation is locked; unlock it to get comments.');
      }
      if (failure.status === 410) return warning(`${upperFirst(reportPlace(host))}.`);
      const reason = readOnlyReason(run);
      if (reason !== undefined) {
        return { level: 'notice', message: `${what}. ${reason}; ${reportPlace(host)}.`, fix: [] };
      }
      return warning(...neededRight(failure, host, token));
    }
    case 'unauthorized':
      return warning('The input "github-token" is no valid token, or it has expired.');
    case 'throttled':
      return warning('The rate limit is used up; the next run writes the comment.');
    case 'aborted':
      return undefined;
    case 'conflict':
    case 'invalid':
    case 'server-error':
    case 'timeout':
    case 'network':
    case 'unreadable':
      return warning(`${upperFirst(reportPlace(host))}.`);
  }
}

/** Returns where the report can be read without the comment. */
export function reportPlace({ hasSummary }: Host): string {
  return hasSummary ? 'the job summary has the report' : 'the step log has the report';
}

function neededRight(
  failure: ApiFailure,
  host: Host,
  token: string,
): [advice: string, fix?: readonly string[]] {
  const kind = kindOfToken(failure, host, token);
  if (kind === 'workflow') {
    const bound = host.kind === 'gitea' ? ', within what the settings of the repository allow' : '';
    return [
      `The token lacks the permission "pull-requests: write"; add these two lines to the job${bound}:`,
      PERMISSION_LINES,
    ];
  }
  const has = kind === 'classic' ? (failure.scopes ?? '') : '';
  return [`${NEEDS[kind]}${has === '' ? '' : `; it has: ${has}`}.`];
}

const NEEDS = {
  app: 'The app that issued the token needs the permission "Pull requests: Read and write"',
  'fine-grained':
    'The fine-grained token needs this repository among its repositories, and the permission "Pull requests: Read and write"',
  classic: 'The token needs the scope "repo" ("public_repo" is enough for a public repository)',
  scoped: 'Give the token the scopes "write:issue" and "read:repository"',
  forgejo:
    'The workflow\'s own token may not write here; give another with the scopes "write:issue" and "read:repository" as "github-token"',
};

/**
 * Returns the kind of a token, from what the host says about it, else from its prefix (GitHub's token formats).
 */
function kindOfToken(
  { message, scopes }: ApiFailure,
  host: Host,
  token: string,
): 'workflow' | keyof typeof NEEDS {
  if (host.kind !== 'github') {
    if (/\bscope/i.test(message)) return 'scoped';
    return host.kind === 'forgejo' ? 'forgejo' : 'workflow';
  }
  if (scopes !== undefined) return 'classic';
  if (/personal access token/i.test(message) || token.startsWith('github_pat_')) {
    return 'fine-grained';
  }
  if (/^gh[po]_/.test(token)) return 'classic';
  return token.startsWith('ghu_') ? 'app' : 'workflow';
}
