import { type CommentContent, hasMarker, renderComment } from '../report/comment.ts';
import type { Comment, HostApi, HostFailure } from './host-api.ts';

interface CommentTask extends CommentContent {
  /** Number of the pull request. */
  issue: number;
  /** Whether a new comment may be created if there is none. */
  mayCreate: boolean;
  api: HostApi;
}

/**
 * Returns the address of the comment; empty if there is none and none may be created. The oldest one is edited (that sends no
 * e-mail); others, of runs that began at the same moment, are merged into it. A failed attempt can be repeated as a whole.
 */
export async function putComment(task: CommentTask): Promise<string> {
  const { api, issue, key, mayCreate } = task;
  // The marker alone is no proof that a comment is ours: anyone can write one.
  const marked = await api.comments(issue, (body) => hasMarker(body, key));
  const viewer = marked.length === 0 ? undefined : await api.viewer();
  const ours = marked.filter((comment) => isOurs(comment, viewer));
  const [target, ...others] = ours;
  if (target === undefined && !mayCreate) return '';
  const bodies = ours.map(({ body }) => body);
  const text = renderComment(task, bodies);
  if (target === undefined) return (await api.createComment(issue, text)).url;
  await api.updateComment(target.id, text);
  // Another run may have deleted it meanwhile.
  for (const { id } of others) await api.deleteComment(id).catch(() => undefined);
  return target.url;
}

function isOurs({ author, authorType }: Comment, viewer: string | undefined): boolean {
  if (viewer === undefined) {
    // The account of a workflow's own token. A person may have such a name, but then GitHub says "User".
    return authorType !== 'User' && /^\w+-actions(\[bot\])?$/.test(author);
  }
  // GraphQL says "github-actions[bot]" or "my-app", REST "my-app[bot]" for the same account.
  const bare = (login: string): string => login.toLowerCase().replace(/\[bot\]$/, '');
  const isBot = viewer.endsWith('[bot]');
  return bare(author) === bare(viewer) && (!isBot || author.endsWith('[bot]'));
}

/** The words of GitHub for a permission that the token lacks. */
const PERMISSION = /not accessible by|must have|permission|scope|not granted/i;

const ELSEWHERE = 'the step log has the report';

export function adviceFor(failure: HostFailure, isFork: boolean): string {
  const { status, message } = failure;
  if (status === 401) return 'the input "github-token" is no valid token, or it has expired';
  // A host hides with 404 what a token may not see. A 403 has many other reasons, against which no permission helps: a
  // rate limit, a locked conversation, single sign-on, the address of the runner, a proxy.
  if (status !== 404 && !(status === 403 && PERMISSION.test(message))) return ELSEWHERE;
  if (isFork) return `the token of a run for a fork can only read; ${ELSEWHERE}`;
  return `${status === 404 ? 'if it exists, ' : ''}add "permissions: pull-requests: write" to the job (a token of your own needs "Pull requests: Read and write"; a classic one "repo")`;
}
