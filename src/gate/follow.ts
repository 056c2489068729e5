import { stringAt } from '../base/json.ts';
import { type Clock, unlessAborted } from '../base/time.ts';
import type { WatchEvent } from '../kubernetes/api.ts';
import { namespaceFacts } from '../model/facts/metadata.ts';
import type { Read, ReadFailure } from '../model/read.ts';
import type { NamespaceFacts } from '../model/snapshot.ts';
import { MAX_SINGLE_READS } from '../observe/collections.ts';
import { NAMESPACES_PATH, readNamespaces } from '../observe/namespaces.ts';
import { type ConfirmDeps, confirmEnds } from './confirm.ts';

/** Interval of GETs while a watch is open. A watch may be dropped without notice, and only a GET decides. */
const POLL_WITH_WATCH_MS = 30_000;
/** Interval of GETs without a watch. It is short at first and then longer. */
const POLL_WITHOUT_WATCH_MS = { first: 1_000, factor: 1.3, most: 5_000 };
/** Limit for the GET before a verdict, retries included. */
const CONFIRM_MS = 10_000;
const REFUSED_PAUSE_MS = 2_000;
/** Pause before a watch is opened again after it ended or failed. */
const REWATCH_MS = { first: 200, factor: 2, most: 15_000 };
/** Duration after which a watch counts as working. Others end at once every time. */
const LASTING_MS = 10_000;

/** The end of the wait, and its time in milliseconds since the epoch. */
type WaitEnd = { at: number } & (
  | { how: 'deleted' | 'recreated'; event: string }
  /** The credentials are refused for good, so nothing more can be read. */
  | { how: 'unauthorized'; failure: ReadFailure }
  | { how: 'stopped' }
);

type WithoutTime<T> = T extends unknown ? Omit<T, 'at'> : never;

/** Called when the namespace has changed, or when reading starts or stops working. */
type OnChange = (last: NamespaceFacts, trouble: ReadFailure | undefined) => void;

interface FollowDeps extends ConfirmDeps {
  /** Whether only `confirm` reads. Then no watch and no polling are needed, because nothing waits. */
  idle: boolean;
}

/** Follows one namespace, by the UID that was read first, until it is deleted or the wait is stopped. */
export class Follower {
  readonly name: string;
  readonly uid: string;
  /** The namespace as last read. */
  last: NamespaceFacts;
  /** Whether a watch has reported that this UID was deleted. */
  isDeletionWatched = false;
  /** Why the last GET failed; undefined while reading works. */
  trouble: ReadFailure | undefined;
  private readonly end = new AbortController();
  private readonly ending = Promise.withResolvers<WaitEnd>();
  private readonly onChange: OnChange;
  private readonly clock: Clock;
  /** Settles once and never rejects. */
  readonly ended = this.ending.promise;
  /** Aborts as soon as `ended` settles, so that the reads of a diagnosis stop as well. */
  readonly over = this.end.signal;
  /** Reads the namespace once more before a verdict; concurrent calls share the read. */
  readonly confirm: () => Promise<void>;

  constructor(
    start: NamespaceFacts,
    onChange: OnChange,
    confirm: () => Promise<void>,
    { clock, signal }: Pick<FollowDeps, 'clock' | 'signal'>,
  ) {
    this.name = start.name;
    this.uid = start.uid;
    this.last = start;
    this.onChange = onChange;
    this.confirm = confirm;
    this.clock = clock;
    const stop = (): void => this.settle({ how: 'stopped' });
    signal.addEventListener('abort', stop, { once: true });
    if (signal.aborted) stop();
  }

  settle(ended: WithoutTime<WaitEnd>): void {
    this.ending.resolve({ ...ended, at: this.clock.now() });
    this.end.abort();
  }

  /** Processes the answer of a read: it ends the wait, updates `last`, or records the failure. */
  handleRead(now: Read<NamespaceFacts | undefined>): void {
    if (this.over.aborted) return;
    if (!now.ok) {
      const late = `no answer within ${CONFIRM_MS / 1_000} s`;
      const { kind, message } = now.failure;
      this.update(this.last, { ...now.failure, message: kind === 'aborted' ? late : message });
    } else if (now.value === undefined) {
      this.settle({ how: 'deleted', event: 'deleted' });
    } else if (now.value.uid !== this.uid) {
      const event = `deleted; a new namespace with the same name has UID ${now.value.uid}`;
      this.settle({ how: 'recreated', event });
    } else this.update(now.value, undefined);
  }

  /** Processes an event of a watch. Returns true if the namespace has to be read. */
  handleEvent({ type, object }: WatchEvent): boolean {
    const uid = stringAt(object, 'metadata', 'uid');
    if (type === 'DELETED' && uid === this.uid) this.isDeletionWatched = true;
    if (type === 'DELETED' || (uid !== undefined && uid !== this.uid)) return true;
    if (type === 'MODIFIED' && uid !== undefined) this.update(namespaceFacts(object), this.trouble);
    return false;
  }

  private update(now: NamespaceFacts, trouble: ReadFailure | undefined): void {
    const isNews =
      this.trouble?.message !== trouble?.message ||
      now.resourceVersion !== this.last.resourceVersion;
    this.trouble = trouble;
    this.last = now;
    if (isNews) this.onChange(now, trouble);
  }
}

/** Followers that share one watch, and one list for each poll. */
interface Group extends Omit<ConfirmDeps, 'signal'> {
  followers: readonly Follower[];
  /** Aborts when the last of them has ended. */
  running: AbortSignal;
  watched: Set<Follower>;
  /**
   * Followers that have to be read again. The set is also the wake-up: news during a read must cause another
   * read.
   */
  due: Set<Follower>;
  wake: () => void;
  /** The current read. */
  busy: Promise<void>;
}

/**
 * Follows namespaces. A watch notices changes, polling confirms them: `deleted` and `recreated` require a second
 * GET that answers 404 or another UID, from the same cluster. An error, timeout or 403 never counts as deleted.
 * Each namespace ends by itself. Many share one group.
 */
export function follow(
  starts: readonly { first: NamespaceFacts; onChange: OnChange }[],
  deps: FollowDeps,
): Follower[] {
  const groups = starts.length > MAX_SINGLE_READS ? [starts] : starts.map((one) => [one]);
  return groups.flatMap((some) => followTogether(some, deps));
}

function followTogether(
  starts: readonly { first: NamespaceFacts; onChange: OnChange }[],
  deps: FollowDeps,
): Follower[] {
  let confirming: Promise<void> | undefined;
  const confirm = async (): Promise<void> => {
    const signal = AbortSignal.any([group.running, AbortSignal.timeout(CONFIRM_MS)]);
    confirming ??= readInTurn(openFollowers(followers), group, signal);
    await confirming;
    confirming = undefined;
  };
  const followers = starts.map(
    ({ first, onChange }) => new Follower(first, onChange, confirm, deps),
  );
  const running = AbortSignal.any([deps.signal, allOver(followers)]);
  const group: Group = {
    ...{ ...deps, followers, running, watched: new Set(), due: new Set() },
    ...{ wake: () => undefined, busy: Promise.resolve() },
  };
  // Both end when `running` aborts; neither rejects, since reads are values.
  if (!deps.idle) void Promise.all([pollGroup(group), watchGroup(followers, group)]);
  return followers;
}

/** Returns a signal that aborts when the last of these followers has ended. */
export function allOver(followers: readonly Follower[]): AbortSignal {
  const controller = new AbortController();
  void Promise.all(followers.map(({ ended }) => ended)).then(() => controller.abort());
  return controller.signal;
}

function openFollowers(some: Iterable<Follower>): Follower[] {
  return [...some].filter(({ over }) => !over.aborted);
}

/**
 * Reads after all earlier reads. Otherwise an answer between the two reads that confirm a deletion could be
 * lost.
 */
async function readInTurn(
  some: readonly Follower[],
  group: Group,
  signal = group.running,
): Promise<void> {
  const turn = unlessAborted(group.busy, signal)
    .catch(() => undefined)
    .then(() => readFollowed(some, group, signal));
  group.busy = turn;
  await turn;
}

async function readFollowed(
  some: readonly Follower[],
  group: Group,
  signal: AbortSignal,
  isSecond = false,
): Promise<void> {
  const { api, clock, running } = group;
  const now = await readNamespaces(some, { api, signal });
  const ended = some.filter(({ name, uid }) => {
    const got = now.get(name);
    return got?.ok && got.value?.uid !== uid;
  });
  const sure = await confirmEnds(ended, { ...group, signal });
  for (const [name, got] of sure) now.set(name, got);
  if (running.aborted) return;
  const refused = some.filter((one) => {
    const got = now.get(one.name) as Read<NamespaceFacts | undefined>;
    if (got.ok || got.failure.kind !== 'unauthorized') one.handleRead(got);
    else if (isSecond && !sure.has(one.name))
      one.settle({ how: 'unauthorized', failure: got.failure });
    else return true;
    return false;
  });
  if (refused.length === 0) return;
  // A first refusal may come from a server that has just restarted. A second one after a pause counts, unless another
  // answer came between the two.
  await clock.sleep(REFUSED_PAUSE_MS, running);
  await readFollowed(refused, group, signal, true);
}

async function pollGroup(group: Group): Promise<void> {
  const { clock, due, followers, running, watched } = group;
  let pause = POLL_WITHOUT_WATCH_MS.first;
  let checkedAt = clock.now();
  while (!running.aborted) {
    const woken = new AbortController();
    group.wake = () => woken.abort();
    const isWatched = openFollowers(followers).every((one) => watched.has(one));
    const nextAt = checkedAt + (isWatched ? POLL_WITH_WATCH_MS : pause);
    const signal = AbortSignal.any([running, woken.signal]);
    if (due.size === 0) await clock.sleep(Math.max(0, nextAt - clock.now()), signal);
    if (running.aborted) return;
    const some = openFollowers(clock.now() >= nextAt ? followers : due);
    due.clear();
    pause = Math.min(pause * POLL_WITHOUT_WATCH_MS.factor, POLL_WITHOUT_WATCH_MS.most);
    await readInTurn(some, group);
    if (some.length >= openFollowers(followers).length) checkedAt = clock.now();
  }
}

async function watchGroup(some: readonly Follower[], group: Group): Promise<void> {
  const { api, clock, running, watched } = group;
  const pollNow = (followers: readonly Follower[]): void => {
    for (const one of followers) group.due.add(one);
    group.wake();
  };
  const byName = new Map(some.map((one) => [one.name, one]));
  const [only] = some.length === 1 ? some : [];
  const signal = only === undefined ? running : AbortSignal.any([running, only.over]);
  let pause = REWATCH_MS.first;
  while (!signal.aborted) {
    let openedAt = Number.POSITIVE_INFINITY;
    const result = await api.watch(NAMESPACES_PATH, {
      ...(only === undefined ? {} : { fieldSelector: `metadata.name=${only.name}` }),
      signal,
      onOpen: () => {
        for (const one of some) watched.add(one);
        openedAt = clock.now();
        // Changes before the watch was open are not in it.
        pollNow(openFollowers(some));
      },
      onEvent: (event) => {
        const one = byName.get(stringAt(event.object, 'metadata', 'name') ?? '');
        if (one !== undefined && !one.over.aborted && one.handleEvent(event)) pollNow([one]);
      },
    });
    for (const one of some) watched.delete(one);
    if (signal.aborted) return;
    // The end of the watch may hide the deletion of a namespace.
    pollNow(openFollowers(some));
    const isForbidden = !result.ok && result.failure.kind === 'forbidden';
    // An identity that may not watch all namespaces may be allowed to watch a single one.
    if (isForbidden && only === undefined) {
      await Promise.all(some.map((one) => watchGroup([one], group)));
      return;
    }
    if (clock.now() - openedAt >= LASTING_MS) pause = REWATCH_MS.first;
    await clock.sleep(isForbidden ? REWATCH_MS.most : pause, signal);
    pause = Math.min(pause * REWATCH_MS.factor, REWATCH_MS.most);
  }
}
