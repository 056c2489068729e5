import { createHmac } from 'node:crypto';
import type { Clock } from '../base/time.ts';
import type { Read } from '../model/read.ts';
import { type CommentContent, hasMarker, renderComment } from '../report/comment.ts';
import { isUpToDate, signatureIn } from '../report/comment-state.ts';
import {
  type ApiFailure,
  CALL_TIMEOUT_MS,
  type Comment,
  type HostApi,
  MAY_HAVE_ARRIVED,
} from './host-api.ts';
import type { Host } from './workflow-run.ts';

interface CommentTask extends CommentContent {
  /** Number of the pull request. */
  issue: number;
  /** Whether a new comment may be created if there is none. */
  mayCreate: boolean;
  /**
   * Whether other jobs write into this comment and this run ends red, so that a late write must not hide it.
   */
  isGuarded: boolean;
  token: string;
  host: Host;
  api: HostApi;
  clock: Clock;
  signal: AbortSignal;
}

/**
 * The address of the comment (empty if there is none and none may be created), or the attempt that failed.
 */
type CommentOutcome = { url: string } | { what: 'read' | 'write'; failure: ApiFailure };

/** Time in which another job that writes at the same moment finishes its read and its write. */
const SETTLE_MS = 1_000;
/**
 * Longest time in which a write that another job sent before ours can still take effect. GitHub ends a request
 * after 10 s ("Timeouts" in its REST documentation); the rest is a margin.
 */
const LATE_MS = 12_000;
const MAX_ROUNDS = 12;
const MAX_FAILURES = 2;

/**
 * Writes one comment for one key. The oldest own comment is edited (editing sends no e-mail), other own comments
 * are merged into it and deleted, and comments of others are never changed. No host offers a conditional write.
 * Therefore each attempt reads, merges and writes, and then checks that everything it has ever read is still
 * there.
 */
export async function putComment(task: CommentTask): Promise<CommentOutcome> {
  let uncertainUntil = task.isGuarded ? task.clock.now() + LATE_MS : 0;
  for (let failures = 0; ; ) {
    const mine = await ownComments(task, undefined);
    if (!mine.ok) return { what: 'read', failure: mine.failure };
    const [oldest, ...others] = mine.value;
    if (oldest !== undefined) return editComment(oldest, others, uncertainUntil, task);
    if (!task.mayCreate) return { url: '' };
    const sentAt = task.clock.now();
    const made = await task.api.createComment(task.issue, renderComment(task, {}, undefined));
    if (made.ok) {
      // Another job may have created a comment at the same moment; and the host has now named our identity.
      const all = await ownComments(task, made.value.author);
      const beside = all.ok ? all.value.filter(({ id }) => id !== made.value.id) : [];
      const [first = made.value, ...more] = [...beside, made.value].sort((a, b) => a.id - b.id);
      return editComment(first, more, uncertainUntil, task);
    }
    if (MAY_HAVE_ARRIVED.test(made.failure.kind)) uncertainUntil = sentAt + LATE_MS;
    if (++failures > MAX_FAILURES || !(await isWorthAnotherTry(made.failure, task))) {
      return { what: 'write', failure: made.failure };
    }
  }
}

/** Waits as long as the host asks. Returns false if another attempt is useless or too late. */
async function isWorthAnotherTry(
  { kind, retryAfterMs }: ApiFailure,
  { clock, signal }: CommentTask,
): Promise<boolean> {
  const isPassing =
    kind === 'throttled'
      ? retryAfterMs !== undefined && retryAfterMs <= CALL_TIMEOUT_MS
      : MAY_HAVE_ARRIVED.test(kind) || kind === 'conflict';
  if (!isPassing || signal.aborted) return false;
  await clock.sleep(retryAfterMs ?? SETTLE_MS, signal);
  return !signal.aborted;
}

/**
 * Writes into `target` until it contains everything, and deletes the others. `uncertainUntil`: time until which a write
 * may still arrive that lacks our entry, or an earlier write of ours that got no answer; 0 if there is none.
 */
async function editComment(
  target: Comment,
  others: readonly Comment[],
  uncertainUntil: number,
  task: CommentTask,
): Promise<CommentOutcome> {
  const { api, clock, host, isGuarded, key, signal, token } = task;
  // A token that may not read `/user` recognizes its own comments by a signature.
  const isSigned = host.kind !== 'github' && !OTHER_LOGINS.includes(target.author);
  const signature = isSigned ? sign(token, target.author) : undefined;
  /** All bodies that were read. Their content must not be lost by a write that arrives late. */
  const seen = new Set([target, ...others].map(({ body }) => body));
  let replaced = [...seen];
  let duplicates = others;
  let { url } = target;
  let written: CommentOutcome = { url };
  const isWhole = (body: string): boolean =>
    isUpToDate(body, [...seen], task) && signatureIn(body) === signature && hasMarker(body, key);
  let failures = 0;
  let isLate = false;
  for (let round = 1; ; round++) {
    const [current = ''] = replaced;
    if (duplicates.length === 0 && isWhole(current)) {
      if (isLate || uncertainUntil === 0) return { url };
      await clock.sleep(Math.max(0, uncertainUntil - clock.now()), signal);
      isLate = true;
    } else if (round > MAX_ROUNDS) {
      const message = 'others write into it at the same time';
      return { what: 'write', failure: { kind: 'conflict', message } };
    } else {
      const body = renderComment(task, { seen: [...seen], replaced }, signature);
      const sentAt = clock.now();
      const put = await api.updateComment(target.id, body);
      isLate = false;
      const mayArriveLater = !put.ok && MAY_HAVE_ARRIVED.test(put.failure.kind);
      if (isGuarded || mayArriveLater) uncertainUntil = sentAt + LATE_MS;
      if (put.ok) {
        written = { url: put.value.url };
        for (const { id } of duplicates) await api.deleteComment(id);
        duplicates = [];
        // The pauses grow when many jobs write.
        await clock.sleep(SETTLE_MS * (1 + (Math.random() * round) / 2), signal);
      } else if (++failures > MAX_FAILURES || !(await isWorthAnotherTry(put.failure, task))) {
        return handleRefusedEdit(put.failure, [...seen], replaced, task);
      } else written = { what: 'write', failure: put.failure };
    }
    // By the last read, a comment that was sent earlier may have arrived as a second one.
    const now = isLate ? await ownComments(task, target.author) : await api.comment(target.id);
    const all = now.ok ? [now.value].flat() : [];
    const there = all.find(({ id }) => id === target.id);
    // It is not known whether another writer has overwritten it.
    if (there === undefined) return written;
    duplicates = all.filter((one) => one !== there);
    ({ url } = there);
    replaced = [there, ...duplicates].map(({ body }) => body);
    for (const body of replaced) seen.add(body);
  }
}

/** Handles a comment that is not the gate's, or was deleted since: writes a new one, once, with its entries. */
async function handleRefusedEdit(
  failure: ApiFailure,
  seen: readonly string[],
  replaced: readonly string[],
  task: CommentTask,
): Promise<CommentOutcome> {
  const { api, issue, mayCreate } = task;
  const isNotOurs = failure.kind === 'forbidden' || failure.kind === 'not-found';
  if (!isNotOurs || !mayCreate) {
    return failure.kind === 'not-found' ? { url: '' } : { what: 'write', failure };
  }
  const made = await api.createComment(issue, renderComment(task, { seen, replaced }, undefined));
  return made.ok ? { url: made.value.url } : { what: 'write', failure: made.failure };
}

/**
 * Returns our own comments. The marker alone is no proof, because anyone can write one. Our identity is
 * requested only if there is a marker.
 */
async function ownComments(
  task: CommentTask,
  author: string | undefined,
): Promise<Read<Comment[], ApiFailure>> {
  let viewer = author === undefined ? undefined : Promise.resolve<string | undefined>(author);
  return task.api.comments(task.issue, async (comment) => {
    if (!hasMarker(comment.body, task.key)) return false;
    viewer ??= task.api.viewer().then((got) => (got.ok ? got.value : undefined));
    return isOurs(comment, await viewer, task);
  });
}

/** Login of a workflow's own token. On hosts other than GitHub no other user can have it. */
const WORKFLOW_LOGIN = 'github-actions[bot]';
const OTHER_LOGINS: readonly string[] = ['gitea-actions', 'forgejo-actions'];

function isOurs(
  { author, authorType, body }: Comment,
  viewer: string | undefined,
  { host, token }: CommentTask,
): boolean {
  if (viewer !== undefined) {
    // GraphQL says "github-actions[bot]" or "my-app", REST "my-app[bot]" for the same account.
    const bare = (login: string): string => login.toLowerCase().replace(/\[bot\]$/, '');
    const isBot = viewer.endsWith('[bot]');
    return bare(author) === bare(viewer) && (!isBot || author.endsWith('[bot]'));
  }
  if (signatureIn(body) === sign(token, author)) return true;
  // GitHub always returns the type of an account, so a person with such a name is not mistaken for a bot.
  return host.kind === 'github'
    ? author === WORKFLOW_LOGIN && authorType === 'Bot'
    : OTHER_LOGINS.includes(author);
}

/**
 * Returns a signature that only the holder of the token can compute for this author. The token cannot be derived
 * from it.
 */
function sign(token: string, author: string): string {
  return createHmac('sha256', token).update(`comment by ${author}`).digest('hex').slice(0, 32);
}
