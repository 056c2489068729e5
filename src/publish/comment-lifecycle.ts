import type { Read, ReadFailure } from '../model/read.ts';
import type { Comment, GithubApi } from './github-api.ts';

export interface CommentTask {
  issue: number;
  /** First line of our comments for this gate. */
  marker: string;
  /** Whether a new comment may be written where there is none. */
  mayCreate: boolean;
  /** The whole body; gets the body that it replaces, or nothing for a new comment. */
  render: (earlier: string | undefined) => string;
}

export type CommentOutcome =
  | { kind: 'created' | 'updated'; url: string }
  | { kind: 'none' }
  | { kind: 'failed'; what: 'read' | 'write'; failure: ReadFailure };

/**
 * One comment per gate and pull request: the oldest of ours is edited (editing sends no e-mail),
 * others of ours are removed, somebody else's is never touched.
 */
export async function putComment(
  task: CommentTask,
  api: GithubApi,
  signal?: AbortSignal,
): Promise<CommentOutcome> {
  const mine = await ownComments(task, api, signal);
  if (!mine.ok) return { kind: 'failed', what: 'read', failure: mine.failure };
  const [oldest, ...others] = mine.value;
  if (oldest === undefined) return create(task, api, signal);

  const updated = await api.updateComment(oldest.id, task.render(oldest.body), signal);
  if (updated.ok) {
    await removeAll(others, api, signal);
    return { kind: 'updated', url: updated.value.url };
  }
  // Refused: not ours after all, or deleted since it was listed.
  const isNotOurs = updated.failure.kind === 'forbidden' || updated.failure.kind === 'not-found';
  if (isNotOurs && task.mayCreate) return create(task, api, signal, oldest.body);
  if (updated.failure.kind === 'not-found') return { kind: 'none' };
  return { kind: 'failed', what: 'write', failure: updated.failure };
}

async function create(
  task: CommentTask,
  api: GithubApi,
  signal: AbortSignal | undefined,
  earlier?: string,
): Promise<CommentOutcome> {
  if (!task.mayCreate) return { kind: 'none' };
  const created = await api.createComment(task.issue, task.render(earlier), signal);
  if (!created.ok) return { kind: 'failed', what: 'write', failure: created.failure };
  return earlier === undefined
    ? settleRace(created.value, task, api, signal)
    : { kind: 'created', url: created.value.url };
}

/**
 * Two jobs with the same key may both have created one. Each looks again and gives way to the oldest,
 * into which it then writes; so one comment stays, with the teardowns of both in it.
 */
async function settleRace(
  created: Comment,
  task: CommentTask,
  api: GithubApi,
  signal: AbortSignal | undefined,
): Promise<CommentOutcome> {
  const mine = await ownComments(task, api, signal);
  const oldest = mine.ok ? mine.value[0] : undefined;
  if (oldest === undefined || oldest.id >= created.id) return { kind: 'created', url: created.url };
  const updated = await api.updateComment(oldest.id, task.render(oldest.body), signal);
  if (!updated.ok) return { kind: 'created', url: created.url };
  await removeAll([created], api, signal);
  return { kind: 'updated', url: updated.value.url };
}

/** A duplicate that cannot be removed is untidy, not wrong; the next run tries again. */
async function removeAll(
  duplicates: readonly Comment[],
  api: GithubApi,
  signal: AbortSignal | undefined,
): Promise<void> {
  for (const { id } of duplicates) await api.deleteComment(id, signal);
}

/** The marker alone is no proof: anybody can write one. */
async function ownComments(
  task: CommentTask,
  api: GithubApi,
  signal: AbortSignal | undefined,
): Promise<Read<Comment[]>> {
  const marked = await api.comments(task.issue, task.marker, signal);
  if (!marked.ok || marked.value.length === 0) return marked;
  const viewer = await api.viewer(signal);
  const login = viewer.ok ? viewer.value : undefined;
  return { ok: true, value: marked.value.filter((comment) => isOurs(comment, login)) };
}

/** Logins under which a workflow's own token writes, where the server does not tell who we are. */
const SERVERS_WITHOUT_TYPES = new Set(['gitea-actions', 'forgejo-actions']);

export function isOurs(comment: Comment, viewer: string | undefined): boolean {
  if (viewer !== undefined) return bare(comment.author) === bare(viewer);
  // GitHub always says what an account is, so a person cannot pass by taking such a name.
  if (comment.authorType === undefined) return SERVERS_WITHOUT_TYPES.has(comment.author);
  return comment.authorType === 'Bot' && comment.author === 'github-actions[bot]';
}

/** GraphQL says "github-actions[bot]" or "my-app", REST "my-app[bot]" for the same account. */
function bare(login: string): string {
  return login.toLowerCase().replace(/\[bot\]$/, '');
}
