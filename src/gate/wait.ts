import { stringAt } from '../base/json.ts';
import type { Clock } from '../base/time.ts';
import type { KubernetesApi } from '../kubernetes/api.ts';
import { namespacePath } from '../kubernetes/paths.ts';
import type { Read, ReadFailure } from '../model/read.ts';
import { failed, read } from '../model/read.ts';
import type { NamespaceFacts } from '../model/snapshot.ts';
import { namespaceFacts } from '../observe/parse.ts';

/** A GET while a watch is open: it may be dropped without a word, and the truth is a GET. */
const POLL_WITH_WATCH_MS = 30_000;
/** Without a watch, polling alone has to notice the end; it starts quick and gets slower. */
const POLL_WITHOUT_WATCH_MS = { first: 1_000, factor: 1.3, most: 5_000 };
/** The GET before a verdict, retries included. */
const CONFIRM_MS = 5_000;
const REFUSED_PAUSE_MS = 2_000;
/** Opening a watch again after it ended or failed. */
const REWATCH_MS = { first: 200, factor: 2, most: 15_000 };
/** A watch that lasted this long was a good one; others end at once, every time. */
const LASTING_MS = 10_000;

export type Ended =
  | { how: 'deleted' }
  | { how: 'recreated'; uid: string }
  /** The credentials are refused for good; nothing more can be learned. */
  | { how: 'unauthorized'; failure: ReadFailure }
  | { how: 'stopped' };

/** Follows one namespace, pinned to the UID that was read first, until it is gone or stopped. */
export interface Follower {
  /** As last read. */
  readonly last: NamespaceFacts;
  /** Why the last GET gave no answer; undefined while reading works. */
  readonly trouble: ReadFailure | undefined;
  /** Settles once, never rejects. */
  readonly ended: Promise<Ended>;
  /** Aborts as soon as `ended` settles, so that reading for a diagnosis stops as well. */
  readonly over: AbortSignal;
  /** One GET now, to be sure before a verdict. */
  confirm(): Promise<void>;
  stop(): void;
}

export interface FollowDeps {
  api: KubernetesApi;
  clock: Clock;
  signal: AbortSignal;
  /** A changed namespace, or a change between "can be read" and "cannot". */
  onChange?: (last: NamespaceFacts, trouble: ReadFailure | undefined) => void;
  /** Only `confirm` reads: nobody waits, so neither a watch nor polling is worth a request. */
  idle?: boolean;
}

/** The namespace as it is now; `undefined` when the API server says that the name does not exist. */
export async function readNamespace(
  api: KubernetesApi,
  name: string,
  signal: AbortSignal,
): Promise<Read<NamespaceFacts | undefined>> {
  // Whoever waits for it polls anyway, and has to hear soon what the server says.
  const got = await api.get(namespacePath(name), { signal, retries: 3 });
  if (got.ok) return identified(namespaceFacts(got.value));
  return got.failure.kind === 'not-found' ? read(undefined) : got;
}

/** Without a UID nobody knows which namespace it is: it would pass for another one with this name. */
function identified(facts: NamespaceFacts): Read<NamespaceFacts> {
  if (facts.uid !== '') return read(facts);
  return failed({ kind: 'unreadable', message: 'the server sent a namespace without a UID' });
}

/**
 * A watch tells at once, polling makes sure: `deleted` and `recreated` are only said after a GET that
 * answered 404 or another UID. No error, timeout or 403 ever counts as gone.
 */
export function followNamespace(start: NamespaceFacts, deps: FollowDeps): Follower {
  const over = new AbortController();
  const running = AbortSignal.any([deps.signal, over.signal]);
  const state: { last: NamespaceFacts; trouble: ReadFailure | undefined; watching: boolean } = {
    last: start,
    trouble: undefined,
    watching: false,
  };
  let settle: (ended: Ended) => void = () => undefined;
  const ended = new Promise<Ended>((resolve) => {
    settle = (value) => {
      resolve(value);
      over.abort();
    };
  });
  deps.signal.addEventListener('abort', () => settle({ how: 'stopped' }), { once: true });
  if (deps.signal.aborted) settle({ how: 'stopped' });

  // A flag as well as a wake-up: news that comes in the middle of a GET must cause another one.
  let isPollDue = false;
  let wake: () => void = () => undefined;
  const pollNow = (): void => {
    isPollDue = true;
    wake();
  };

  const take = (now: NamespaceFacts | undefined): void => {
    if (now === undefined) {
      settle({ how: 'deleted' });
      return;
    }
    if (now.uid !== start.uid) {
      settle({ how: 'recreated', uid: now.uid });
      return;
    }
    const changed =
      state.trouble !== undefined || now.resourceVersion !== state.last.resourceVersion;
    state.trouble = undefined;
    state.last = now;
    if (changed) deps.onChange?.(state.last, undefined);
  };

  const check = async (signal = running): Promise<void> => {
    const now = await readNamespace(deps.api, start.name, signal);
    if (running.aborted) return;
    if (!now.ok) {
      if (now.failure.kind === 'unauthorized') {
        // One refusal may be a server that has just restarted; a second one, after a pause, is meant.
        await deps.clock.sleep(REFUSED_PAUSE_MS, running);
        const again = await readNamespace(deps.api, start.name, signal);
        if (running.aborted) return;
        if (!again.ok && again.failure.kind === 'unauthorized') {
          return settle({ how: 'unauthorized', failure: again.failure });
        }
        if (again.ok) return take(again.value);
      }
      const { failure } = now;
      const late = { ...failure, message: `no answer within ${CONFIRM_MS / 1_000} s` };
      const changed = state.trouble?.message !== failure.message;
      state.trouble = failure.kind === 'aborted' ? late : failure;
      if (changed) deps.onChange?.(state.last, state.trouble);
      return;
    }
    take(now.value);
  };

  const poll = async (): Promise<void> => {
    let pause = POLL_WITHOUT_WATCH_MS.first;
    while (!running.aborted) {
      const woken = new AbortController();
      wake = () => woken.abort();
      const wait = state.watching ? POLL_WITH_WATCH_MS : pause;
      if (!isPollDue) await deps.clock.sleep(wait, AbortSignal.any([running, woken.signal]));
      if (running.aborted) return;
      isPollDue = false;
      pause = Math.min(pause * POLL_WITHOUT_WATCH_MS.factor, POLL_WITHOUT_WATCH_MS.most);
      await check();
    }
  };

  const watch = async (): Promise<void> => {
    let pause = REWATCH_MS.first;
    while (!running.aborted) {
      let openedAt = Number.POSITIVE_INFINITY;
      const result = await deps.api.watch('/api/v1/namespaces', {
        fieldSelector: `metadata.name=${start.name}`,
        // Unset: the server starts from its most recent state, so an old version cannot be "too old".
        resourceVersion: '',
        signal: running,
        onOpen: () => {
          state.watching = true;
          openedAt = deps.clock.now();
          // What happened before the watch was open is not in it.
          pollNow();
        },
        onEvent: (event) => {
          const uid = stringAt(event.object, 'metadata', 'uid');
          if (event.type === 'MODIFIED' && uid === start.uid) {
            const facts = namespaceFacts(event.object);
            if (facts.resourceVersion === state.last.resourceVersion) return;
            state.last = facts;
            deps.onChange?.(state.last, state.trouble);
          } else if (event.type === 'DELETED' || (uid !== undefined && uid !== start.uid)) {
            pollNow();
          }
        },
      });
      state.watching = false;
      if (running.aborted) return;
      // The end of a watch may hide the end of the namespace.
      pollNow();
      if (deps.clock.now() - openedAt >= LASTING_MS) pause = REWATCH_MS.first;
      const forbidden = !result.ok && result.failure.kind === 'forbidden';
      await deps.clock.sleep(forbidden ? REWATCH_MS.most : pause, running);
      pause = Math.min(pause * REWATCH_MS.factor, REWATCH_MS.most);
    }
  };

  // Both end when `running` aborts; neither rejects, since reads are values.
  if (deps.idle !== true) void Promise.all([poll(), watch()]);

  return {
    get last() {
      return state.last;
    },
    get trouble() {
      return state.trouble;
    },
    ended,
    over: over.signal,
    confirm: () => check(AbortSignal.any([running, AbortSignal.timeout(CONFIRM_MS)])),
    stop: () => settle({ how: 'stopped' }),
  };
}
