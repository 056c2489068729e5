import { stringAt } from '../base/json.ts';
import { unlessAborted } from '../base/time.ts';
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
/** Pause before a watch is opened again after it ended or failed. */
const REWATCH_MS = { first: 200, factor: 2, most: 15_000 };
/** Pause after a refusal (401): the first may come from a server that has just restarted, the second in a row counts. */
const REFUSED_PAUSE_MS = 2_000;
/** Duration after which a watch counts as working. Others end at once every time. */
const LASTING_MS = 10_000;

/** How the wait for a namespace ended. */
type WaitEnd =
  | { how: 'deleted' | 'recreated'; event: string }
  /** The credentials ended, so nothing more can be read. */
  | { how: 'refused' }
  | { how: 'stopped' };

interface Start {
  first: NamespaceFacts;
  /** Called with what was read, or with why the last read failed. */
  onChange(last: NamespaceFacts, trouble: ReadFailure | undefined): void;
}

interface FollowDeps extends ConfirmDeps {
  /** Whether only `confirm` reads. Then no watch and no polling are needed, because nothing waits. */
  idle: boolean;
}

/**
 * Follows namespaces. A watch notices changes, polling confirms them: `deleted` and `recreated` require that a GET
 * answers 404 or another UID after another GET, or a watch, said so, from the same cluster. An error, timeout or 403
 * never counts as deleted.
 * Each namespace ends by itself. Many share one watch, and one list for each poll.
 */
export function follow(starts: readonly Start[], deps: FollowDeps): Follower[] {
  const groups = starts.length > MAX_SINGLE_READS ? [starts] : starts.map((one) => [one]);
  return groups.flatMap((some) => new Group(some, deps).followers);
}

/** Returns a signal that aborts when the last of these followers has ended. */
export function allOver(followers: readonly Follower[]): AbortSignal {
  const controller = new AbortController();
  void Promise.all(followers.map(({ ended }) => ended)).then(() => controller.abort());
  return controller.signal;
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
  private readonly ending = Promise.withResolvers<WaitEnd & { at: number }>();
  private readonly start: Start;
  private readonly deps: FollowDeps;
  /** The end and its time, in milliseconds since the epoch. Settles once and never rejects. */
  readonly ended = this.ending.promise;
  /** Aborts as soon as `ended` settles, so that the reads of a diagnosis stop as well. */
  readonly over = this.end.signal;
  /** Reads the namespace once more before a verdict; concurrent calls share the read. */
  readonly confirm: () => Promise<void>;

  constructor(start: Start, confirm: () => Promise<void>, deps: FollowDeps) {
    this.name = start.first.name;
    this.uid = start.first.uid;
    this.last = start.first;
    this.start = start;
    this.confirm = confirm;
    this.deps = deps;
    const stop = (): void => this.settle({ how: 'stopped' });
    deps.signal.addEventListener('abort', stop, { once: true });
    if (deps.signal.aborted) stop();
  }

  private settle(ended: WaitEnd): void {
    this.ending.resolve({ ...ended, at: this.deps.clock.now() });
    this.end.abort();
  }

  /** Whether the last read was refused (401). */
  get isRefused(): boolean {
    return this.trouble?.kind === 'unauthorized';
  }

  /** Processes the answer of a read: it ends the wait, updates `last`, or records the failure. */
  handleRead(now: Read<NamespaceFacts | undefined>): void {
    if (this.over.aborted) return;
    if (!now.ok) {
      const isLate = now.failure.kind === 'aborted';
      const message = isLate ? `no answer within ${CONFIRM_MS / 1_000} s` : now.failure.message;
      const wasRefused = this.isRefused;
      this.update(this.last, { ...now.failure, message });
      if (wasRefused && this.isRefused) this.settle({ how: 'refused' });
    } else if (now.value === undefined) {
      this.settle({ how: 'deleted', event: 'deleted' });
    } else if (now.value.uid !== this.uid) {
      const event = `deleted; a new namespace with the same name has UID ${now.value.uid}`;
      this.settle({ how: 'recreated', event });
    } else {
      this.isDeletionWatched = false;
      this.update(now.value, undefined);
    }
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
    this.trouble = trouble;
    this.last = now;
    this.start.onChange(now, trouble);
  }
}

/** Reads and watches for its followers. Its two loops end with the last follower; nothing rejects, reads are values. */
class Group {
  readonly followers: readonly Follower[];
  private readonly deps: FollowDeps;
  /** Aborts when the last of the followers has ended. */
  private readonly running: AbortSignal;
  private isWatched = false;
  /** Followers to read again. A set, because news during a read must cause another read. */
  private readonly due = new Set<Follower>();
  private wake = (): void => undefined;
  private lastRead = Promise.resolve();
  private confirming: Promise<void> | undefined;

  constructor(starts: readonly Start[], deps: FollowDeps) {
    this.deps = deps;
    const confirm = (): Promise<void> => this.confirm();
    this.followers = starts.map((start) => new Follower(start, confirm, deps));
    this.running = AbortSignal.any([deps.signal, allOver(this.followers)]);
    if (!deps.idle) void Promise.all([this.poll(), this.watch()]);
  }

  private async confirm(): Promise<void> {
    const signal = AbortSignal.any([this.running, AbortSignal.timeout(CONFIRM_MS)]);
    this.confirming ??= this.readInTurn(open(this.followers), signal);
    await this.confirming;
    this.confirming = undefined;
  }

  /** Reads after all earlier reads: an answer between the two that confirm a deletion could get lost. */
  private async readInTurn(some: readonly Follower[], signal = this.running): Promise<void> {
    this.lastRead = unlessAborted(this.lastRead, signal)
      .catch(() => undefined)
      .then(() => this.read(some, signal));
    await this.lastRead;
  }

  private async read(some: readonly Follower[], signal: AbortSignal): Promise<void> {
    // Where a watch has reported the deletion, the GET that confirms it is enough.
    const asked = some.filter((one) => !one.isDeletionWatched);
    const now = await readNamespaces(asked, { ...this.deps, signal });
    const ended = some.filter(({ name, uid }) => {
      const got = now.get(name);
      return got === undefined || (got.ok && got.value?.uid !== uid);
    });
    for (const [name, got] of await confirmEnds(ended, { ...this.deps, signal }))
      now.set(name, got);
    if (this.running.aborted) return;
    for (const one of some) one.handleRead(now.get(one.name) as Read<NamespaceFacts | undefined>);
  }

  private async poll(): Promise<void> {
    const { clock } = this.deps;
    let pause = POLL_WITHOUT_WATCH_MS.first;
    let checkedAt = clock.now();
    while (!this.running.aborted) {
      const woken = new AbortController();
      this.wake = () => woken.abort();
      const nextAt = checkedAt + (this.isWatched ? POLL_WITH_WATCH_MS : pause);
      const signal = AbortSignal.any([this.running, woken.signal]);
      if (this.due.size === 0) await clock.sleep(Math.max(0, nextAt - clock.now()), signal);
      if (this.running.aborted) return;
      const some = open(clock.now() >= nextAt ? this.followers : this.due);
      this.due.clear();
      pause = Math.min(pause * POLL_WITHOUT_WATCH_MS.factor, POLL_WITHOUT_WATCH_MS.most);
      await this.readInTurn(some);
      if (some.length >= open(this.followers).length) checkedAt = clock.now();
      const refused = open(some).filter((one) => one.isRefused);
      if (refused.length > 0) await clock.sleep(REFUSED_PAUSE_MS, this.running);
      for (const one of refused) this.due.add(one);
    }
  }

  private pollNow(some: readonly Follower[]): void {
    for (const one of some) this.due.add(one);
    this.wake();
  }

  private async watch(): Promise<void> {
    const { clock } = this.deps;
    const byName = new Map(this.followers.map((one) => [one.name, one]));
    const [only, ...others] = byName.keys();
    let pause = REWATCH_MS.first;
    while (!this.running.aborted) {
      let openedAt = Number.POSITIVE_INFINITY;
      const result = await this.deps.api.watch(NAMESPACES_PATH, {
        ...(others.length === 0 ? { fieldSelector: `metadata.name=${only}` } : {}),
        signal: this.running,
        onOpen: () => {
          this.isWatched = true;
          openedAt = clock.now();
          // Changes before the watch was open are not in it.
          this.pollNow(this.followers);
        },
        onEvent: (event) => {
          const one = byName.get(stringAt(event.object, 'metadata', 'name') ?? '');
          if (one?.over.aborted === false && one.handleEvent(event)) this.pollNow([one]);
        },
      });
      // The end of the watch may hide the deletion of a namespace.
      this.isWatched = false;
      this.pollNow(this.followers);
      const isForbidden = !result.ok && result.failure.kind === 'forbidden';
      if (clock.now() - openedAt >= LASTING_MS) pause = REWATCH_MS.first;
      await clock.sleep(isForbidden ? REWATCH_MS.most : pause, this.running);
      pause = Math.min(pause * REWATCH_MS.factor, REWATCH_MS.most);
    }
  }
}

function open(some: Iterable<Follower>): Follower[] {
  return [...some].filter(({ over }) => !over.aborted);
}
