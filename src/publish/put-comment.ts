import { createHmac } from 'node:crypto';
import type { Clock } from '../base/time.ts';
import type { Read } from '../model/read.ts';
import { type CommentContent, hasMarker, isIn, renderComment } from '../report/comment.ts';
import { signatureIn } from '../report/comment-state.ts';
import type { ApiFailure, Comment, HostApi } from './host-api.ts';
import type { Host } from './workflow-run.ts';

interface CommentTask extends CommentContent {
  /** Number of the pull request. */
  issue: number;
  /** Whether a new comment may be written where there is none. */
  mayCreate: boolean;
  token: string;
  host: Host;
  api: HostApi;
  clock: Clock;
  signal: AbortSignal;
}

/** Its address, empty where there is none and may be none; or what could not be done. */
type CommentOutcome = { url: string } | { what: 'read' | 'write'; failure: ApiFailure };

/** Who writes at the same time has read and written within this. */
const SETTLE_MS = 1_000;
const MAX_ROUNDS = 12;

/**
 * One comment for one key: the oldest of ours is edited (editing sends no e-mail), others of ours are
 * taken into it and removed, somebody else's is never touched. No host can be asked to write only what
 * nobody else has changed meanwhile, so each writer looks again whether its word is still there.
 */
export async function putComment(task: CommentTask): Promise<CommentOutcome> {
  const mine = await ownComments(task, undefined);
  if (!mine.ok) return { what: 'read', failure: mine.failure };
  const ready = mine.value.length > 0 || !task.mayCreate ? mine : await create(task);
  if (!ready.ok) return { what: 'write', failure: ready.failure };
  const [oldest, ...others] = ready.value;
  return oldest === undefined ? { url: '' } : edit(oldest, others, task);
}

/** Somebody else may have created one at the same moment; and now the host has told who we are. */
async function create(task: CommentTask): Promise<Read<Comment[], ApiFailure>> {
  const body = renderComment(task, [], undefined);
  const made = await task.api.createComment(task.issue, body);
  if (!made.ok) return made;
  const all = await ownComments(task, made.value.author);
  const others = all.ok ? all.value.filter(({ id }) => id !== made.value.id) : [];
  return { ok: true, value: [...others, made.value].sort((a, b) => a.id - b.id) };
}

/** Writes into the oldest until it has everything, and removes the others. */
async function edit(
  target: Comment,
  duplicates: readonly Comment[],
  task: CommentTask,
): Promise<CommentOutcome> {
  const { api, clock, host, key, signal, token } = task;
  const signature = needsSignature(host, target.author) ? sign(token, target.author) : undefined;
  const isWhole = (body: string): boolean =>
    isIn(body, task) && signatureIn(body) === signature && hasMarker(body, key);
  let current = target.body;
  let earlier = [target, ...duplicates].map(({ body }) => body);
  let { url } = target;
  for (let round = 1; ; round++) {
    if (!isWhole(current) || earlier.length > 1) {
      const put = await api.updateComment(target.id, renderComment(task, earlier, signature));
      if (!put.ok) return refused(put.failure, earlier, task);
      url = put.value.url;
      if (earlier.length > 1) for (const { id } of duplicates) await api.deleteComment(id);
    }
    // Ever further apart, when there are many.
    await clock.sleep(SETTLE_MS * (1 + (Math.random() * round) / 2), signal);
    const now = await api.comment(target.id);
    // Written it is; whether somebody has written over it, nobody can tell.
    if (!now.ok || isWhole(now.value.body)) return { url };
    if (round === MAX_ROUNDS) {
      const message = 'others write into it at the same time';
      return { what: 'write', failure: { kind: 'conflict', message } };
    }
    current = now.value.body;
    earlier = [current];
  }
}

/** Not ours after all, or removed since it was listed: a new one, once, with what it told. */
async function refused(
  failure: ApiFailure,
  earlier: readonly string[],
  task: CommentTask,
): Promise<CommentOutcome> {
  const { api, issue, mayCreate } = task;
  const isNotOurs = failure.kind === 'forbidden' || failure.kind === 'not-found';
  if (isNotOurs && mayCreate) {
    const made = await api.createComment(issue, renderComment(task, earlier, undefined));
    return made.ok ? { url: made.value.url } : { what: 'write', failure: made.failure };
  }
  return failure.kind === 'not-found' ? { url: '' } : { what: 'write', failure };
}

/** The marker alone is no proof: anybody can write one. Who we are is asked when there is one. */
async function ownComments(
  task: CommentTask,
  author: string | undefined,
): Promise<Read<Comment[], ApiFailure>> {
  let viewer: Promise<string | undefined> | undefined =
    author === undefined ? undefined : Promise.resolve(author);
  return task.api.comments(task.issue, async (comment) => {
    if (!hasMarker(comment.body, task.key)) return false;
    viewer ??= task.api.viewer().then((got) => (got.ok ? got.value : undefined));
    return isOurs(comment, await viewer, task);
  });
}

/** Logins under which a workflow's own token writes; elsewhere than on GitHub nobody else can have them. */
const WORKFLOW_LOGIN = 'github-actions[bot]';
const OTHER_LOGINS: readonly string[] = ['gitea-actions', 'forgejo-actions'];

function isOurs(
  { author, authorType, body }: Comment,
  viewer: string | undefined,
  { host, token }: CommentTask,
): boolean {
  if (viewer !== undefined) {
    const isBot = viewer.endsWith('[bot]');
    return bare(author) === bare(viewer) && (!isBot || author.endsWith('[bot]'));
  }
  if (signatureIn(body) === sign(token, author)) return true;
  // GitHub always says what an account is, so a person cannot pass by taking such a name.
  return host.kind === 'github'
    ? author === WORKFLOW_LOGIN && authorType === 'Bot'
    : OTHER_LOGINS.includes(author);
}

/** GraphQL says "github-actions[bot]" or "my-app", REST "my-app[bot]" for the same account. */
function bare(login: string): string {
  return login.toLowerCase().replace(/\[bot\]$/, '');
}

/** Where only `/user` tells who a token is, one without the right to ask recognises its own signature. */
function needsSignature(host: Host, author: string): boolean {
  return host.kind !== 'github' && !OTHER_LOGINS.includes(author);
}

/** Only who has the token can write it for this author; nobody can get the token from it. */
function sign(token: string, author: string): string {
  return createHmac('sha256', token).update(`comment by ${author}`).digest('hex').slice(0, 32);
}
