import { unlessAborted } from '../base/time.ts';
import type { WatchEvent } from '../kubernetes/api.ts';
import { identity, namespaceFacts } from '../model/facts/metadata.ts';
import type { Read, ReadFailure } from '../model/read.ts';
import type { NamespaceFacts } from '../model/snapshot.ts';
import { NAMESPACES_PATH, readNamespaces } from '../observe/namespaces.ts';
import { type ConfirmDeps, confirmEnds } from './confirm.ts';

/** Only a GET decides. A watch may be dropped without notice. */
const POLL_MS = { watched: 30_000, unwatched: 5_000 };
/** The GET before a verdict, retries included. */
const CONFIRM_MS = 10_000;
/** A watch that lasts so long counts as working, and is opened again at once. Others may end at once every time. */
const LASTING_MS = 10_000;
const REWATCH_MS = { lasting: 200, failed: 15_000 };
/** The first 401 may come from a server that has just restarted; the second in a row counts. */
const REFUSED_PAUSE_MS = 2_000;

/** How the wait for a namespace ended. `refused`: the credentials ended, so nothing more can be read. */
type End = { how: 'deleted' | 'recreated'; event: string } | { how: 'refused' | 'stopped' };

/** A namespace that is followed, by the UID that was read first. */
export interface Follower {
  readonly name: string;
  readonly uid: string;
  last: NamespaceFacts;
  /** Why the last read failed; undefined while reading works. */
  trouble?: ReadFailure;
  ended?: End & { at: number };
  readonly over: AbortController;
}

interface FollowDeps extends ConfirmDeps {
  /** Only `confirm` reads, because nothing waits. */
  idle: boolean;
  /** Called with each read, with `trouble` if it failed, and at the end. */
  onChange(one: Follower): void;
}

/**
 * A watch notices changes, polling confirms them: `deleted` and `recreated` require that a GET answers 404 or another UID
 * after another GET, or a watch, said so, from the same cluster. An error, timeout or 403 never counts as deleted.
 */
export class Following {
  readonly followers: readonly Follower[];
  private readonly deps: FollowDeps;
  private readonly all = new AbortController();
  readonly over = this.all.signal;
  /** A watch has reported their deletion: the GET that confirms it is enough. */
  private readonly reported = new Set<Follower>();
  /** To be read at once. News during a read causes another read. */
  private readonly due = new Set<Follower>();
  private isWatched = false;
  private wake = (): void => undefined;
  private lastRead = Promise.resolve();

  constructor(starts: readonly NamespaceFacts[], deps: FollowDeps) {
    this.deps = deps;
    this.followers = starts.map((first) => {
      return { name: first.name, uid: first.uid, last: first, over: new AbortController() };
    });
    const stop = () => this.open().map((one) => this.end(one, { how: 'stopped' }));
    deps.signal.addEventListener('abort', stop, { once: true });
    if (deps.signal.aborted) stop();
    if (!deps.idle) void Promise.all([this.poll(), this.watch()]);
  }

  async confirm(): Promise<void> {
    const signal = AbortSignal.any([this.over, AbortSignal.timeout(CONFIRM_MS)]);
    await this.readInTurn(this.open(), signal);
    const refused = this.open().filter(isRefused);
    if (refused.length === 0) return;
    await this.deps.clock.sleep(REFUSED_PAUSE_MS, signal);
    await this.readInTurn(refused, signal);
  }

  private open(): Follower[] {
    return this.followers.filter(({ ended }) => ended === undefined);
  }

  private end(one: Follower, end: End): void {
    one.ended = { ...end, at: this.deps.clock.now() };
    this.deps.onChange(one);
    one.over.abort();
    if (this.open().length === 0) this.all.abort();
  }

  /** Reads after all earlier reads: an answer between the two that confirm a deletion could get lost. */
  private async readInTurn(some: readonly Follower[], signal: AbortSignal): Promise<void> {
    this.lastRead = unlessAborted(this.lastRead, signal)
      .catch(() => undefined)
      .then(() => this.read(some, signal));
    await this.lastRead;
  }

  private async read(some: readonly Follower[], signal: AbortSignal): Promise<void> {
    const { reported } = this;
    const asked = some.filter((one) => !reported.has(one));
    const now = await readNamespaces(asked, { ...this.deps, signal });
    const ended = some.filter(({ name, uid }) => {
      const got = now.get(name);
      return got === undefined || (got.ok && got.value?.uid !== uid);
    });
    const isReported = ended.every((one) => reported.has(one));
    const sure = await confirmEnds(ended, { ...this.deps, signal }, isReported);
    for (const one of some) {
      const got = sure.get(one.name) ?? now.get(one.name);
      if (got !== undefined && one.ended === undefined) this.handleRead(one, got);
    }
  }

  private handleRead(one: Follower, now: Read<NamespaceFacts | undefined>): void {
    const { onChange } = this.deps;
    if (!now.ok) {
      const isLate = now.failure.kind === 'aborted';
      const message = isLate ? `no answer within ${CONFIRM_MS / 1_000} s` : now.failure.message;
      const wasRefused = isRefused(one);
      one.trouble = { ...now.failure, message };
      onChange(one);
      if (wasRefused && isRefused(one)) this.end(one, { how: 'refused' });
    } else if (now.value === undefined) {
      this.end(one, { how: 'deleted', event: 'deleted' });
    } else if (now.value.uid !== one.uid) {
      const event = `deleted; a new namespace with the same name has UID ${now.value.uid}`;
      this.end(one, { how: 'recreated', event });
    } else {
      this.reported.delete(one);
      one.last = now.value;
      delete one.trouble;
      onChange(one);
    }
  }

  private async poll(): Promise<void> {
    const { clock } = this.deps;
    const { due, over } = this;
    let checkedAt = clock.now();
    while (!over.aborted) {
      const woken = new AbortController();
      this.wake = () => woken.abort();
      const isSure = this.isWatched && this.open().every(({ trouble }) => trouble === undefined);
      const nextAt = checkedAt + (isSure ? POLL_MS.watched : POLL_MS.unwatched);
      const signal = AbortSignal.any([over, woken.signal]);
      if (due.size === 0) await clock.sleep(Math.max(0, nextAt - clock.now()), signal);
      const isTime = clock.now() >= nextAt;
      const open = this.open();
      const some = open.filter((one) => isTime || due.has(one));
      due.clear();
      if (some.length > 0) await this.readInTurn(some, over);
      if (some.length === open.length) checkedAt = clock.now();
      const refused = some.filter(isRefused);
      if (refused.length > 0) await clock.sleep(REFUSED_PAUSE_MS, over);
      for (const one of refused) due.add(one);
    }
  }

  private pollNow(some: readonly Follower[]): void {
    for (const one of some) this.due.add(one);
    this.wake();
  }

  private async watch(): Promise<void> {
    const { api, clock } = this.deps;
    const { followers, over } = this;
    const [only] = followers.length === 1 ? followers : [];
    while (!over.aborted) {
      let openedAt = Number.POSITIVE_INFINITY;
      await api.watch(NAMESPACES_PATH, {
        ...(only ? { fieldSelector: `metadata.name=${only.name}` } : {}),
        signal: over,
        onOpen: () => {
          this.isWatched = true;
          openedAt = clock.now();
          // Changes before the watch was open are not in it.
          this.pollNow(this.open());
        },
        onEvent: (event) => this.handleEvent(event),
      });
      // The end of the watch may hide the deletion of a namespace.
      this.isWatched = false;
      this.pollNow(this.open());
      const hasLasted = clock.now() - openedAt >= LASTING_MS;
      await clock.sleep(hasLasted ? REWATCH_MS.lasting : REWATCH_MS.failed, over);
    }
  }

  private handleEvent({ type, object }: WatchEvent): void {
    const { name, uid } = identity(object);
    const one = this.open().find((other) => other.name === name);
    if (one === undefined) return;
    if (type === 'DELETED' && uid === one.uid) this.reported.add(one);
    if (type === 'DELETED' || (uid !== '' && uid !== one.uid)) this.pollNow([one]);
    else if (type === 'MODIFIED' && uid !== '') {
      one.last = namespaceFacts(object);
      this.deps.onChange(one);
    }
  }
}

function isRefused({ ended, trouble }: Follower): boolean {
  return ended === undefined && trouble?.kind === 'unauthorized';
}
