import type { Log } from '../base/log.ts';
import { type Clock, serverTimestamp, type TimelineEntry } from '../base/time.ts';
import { classifyErrorText } from '../diagnose/error-texts.ts';
import type { Mutation } from '../kubernetes/api.ts';
import type { NotInspected } from '../model/finding.ts';
import type { Read, ReadFailure } from '../model/read.ts';
import type { ForceRecord } from '../model/result.ts';
import { inParallel, type Reading } from '../observe/collections.ts';
import { actionKey, type ForceAction, type ForcePlan, manyTarget } from './plan.ts';

/** A plan, and the observation on which it is based. */
export interface CurrentPlan extends ForcePlan {
  /** The time at which its facts were read, in ms since the epoch. */
  readAt: number;
  /** Whether no content is being deleted and the cause is known, so that waiting does not help. */
  isStuck: boolean;
}

export interface ForceDeps extends Reading {
  clock: Clock;
  log: Pick<Log, 'line' | 'group'>;
  /** The time at which forcing began, in ms since the epoch. */
  startedAt: number;
  /** Returns why no further write may begin: the run was cancelled, or the time for forcing is over. */
  stopReason(): string | undefined;
  /**
   * Reads, diagnoses and plans again; undefined if the namespace was deleted or cannot be read. `compare`: compares with
   * the observation before. Not after writes of the gate: their effects would look like the work of a controller.
   */
  planAgain(compare: boolean): Promise<CurrentPlan | undefined>;
  /** Waits without writing, and reports whether the namespace was deleted by this time (ms since the epoch). */
  isDeletedBy(untilMs: number): Promise<boolean>;
}

/** A plan that is being carried out. */
export interface ForceRun extends ForceDeps {
  /** Returns why no write to the namespace may begin now: the answer of `stopReason`, or a change of the namespace or cluster. */
  guard(): Promise<string | undefined>;
  /** The latest plan. */
  plan: CurrentPlan;
  journal: Journal;
}

/** The most objects with the same result that are named one by one; more are one row. */
const ONE_BY_ONE = 10;

/** The result for one object. */
interface Done {
  /** Whether this run changed the cluster, or may have. */
  wrote: boolean;
  /** Whether the object now has the intended state. */
  reached: boolean;
  result: string;
}

/** A record of all changes, refusals and leftovers, as they happen. */
export class Journal {
  readonly actions: ForceRecord['actions'] = [];
  readonly refused: ForceRecord['refused'] = [];
  readonly unread: NotInspected[] = [];
  readonly timeline: TimelineEntry[] = [];
  orphans: ForceRecord['orphans'] = [];
  /** Writes that changed, or may have changed, the cluster. */
  writes = 0;
  /** Changes since the plan, by this run or by others. `changedAt`: the last one, in ms since the epoch. */
  changes = 0;
  changedAt = 0;
  /** Writes that failed, by action and UID; a later round does not try them again. */
  readonly givenUp = new Set<string>();
  /** Results of actions, by key; a later plan need not try those that are finished again. */
  readonly tried = new Map<string, 'again' | 'finished'>();
  private readonly run: Pick<ForceDeps, 'api' | 'clock' | 'log'>;

  constructor(run: Pick<ForceDeps, 'api' | 'clock' | 'log'>) {
    this.run = run;
  }

  changed(): void {
    this.changes++;
    this.changedAt = this.run.clock.now();
  }

  refuse(target: string, reason: string): void {
    this.refused.push({ target, reason });
    this.run.log.line(`refused: ${target}: ${reason}`);
  }

  note(target: string, result: string, finalizer = ''): void {
    this.actions.push({ target, finalizer, result });
    const event = `${target}${finalizer === '' ? '' : ` ${finalizer}`}: ${result}`;
    this.timeline.push({ at: serverTimestamp(this.run), event });
    this.run.log.line(event);
  }
}

interface Named {
  name: string;
  uid: string;
}

/** A change to all objects of one type that need it: finalizers, pods, the namespace itself. */
export interface Step<T extends Named> {
  action: ForceAction;
  /** The type, as kubectl takes it. */
  type: string;
  /** Reads the objects again; with a name, only that one. The message of a failure is a whole clause. */
  read(name?: string): Promise<Read<T[]>>;
  wants(object: T): boolean;
  /** The write, with preconditions for the UID and for the fields that were read. */
  request(object: T): Mutation;
  /** The text in the log before each write: "removing example.com/x from". */
  doing: string;
  /** Result of a write that succeeded. */
  done: string;
  /** The result if the object is still there after the write; undefined if that is expected. */
  afterwards(object: T): string | undefined;
  /** Returns why nothing more may be written; called before each write. */
  stop(): Promise<string | undefined>;
  /** Returns why an object, as just read, forbids the whole step. */
  veto?(object: T): string | undefined;
}

/**
 * Reads the objects, writes to each once, in parallel, and reads them again to see the results.
 * Returns whether a repetition may change more.
 */
export async function runStep<T extends Named>(
  run: ForceRun,
  step: Step<T>,
): Promise<'again' | 'finished'> {
  const { journal } = run;
  const { action } = step;
  const { target, finalizer, leaves } = action;
  const idOf = (uid: string): string => `${actionKey(action)} ${uid}`;
  const listed = await step.read();
  if (!listed.ok) {
    journal.note(target, `not done: ${listed.failure.message}`, finalizer);
    return 'finished';
  }
  const wanting = listed.value.filter((object) => step.wants(object));
  const todo = wanting.filter(({ uid }) => !journal.givenUp.has(idOf(uid)));
  if (wanting.length === 0) {
    journal.changed();
    journal.note(target, 'nothing to do: it no longer exists', finalizer);
  }
  const vetoes = todo.flatMap((object) => step.veto?.(object) ?? []);
  /** Why no further write of the step may begin. */
  const end: { reason: string | undefined } = { reason: vetoes[0] };
  const done = await inParallel(todo, async (object) => {
    const one = await write(run, step, object, end);
    if (one.wrote) journal.writes++;
    if (one.wrote || one.reached) journal.changed();
    return { name: object.name, uid: object.uid, ...one };
  });
  /** Changes that this run made, so that it has to report what they leave behind. */
  const mine = done.filter(({ wrote, reached }) => wrote && reached);
  const again = mine.length > 0 ? await step.read() : undefined;
  for (const one of mine) {
    if (again?.ok === false) one.result += `; not read back: ${again.failure.message}`;
    const object = again?.ok ? again.value.find(({ uid }) => uid === one.uid) : undefined;
    const result = object && step.afterwards(object);
    if (result !== undefined) Object.assign(one, { reached: false, result });
    else if (leaves !== undefined) one.result += `; may be left behind: ${leaves}`;
  }
  for (const { reached, uid } of done) if (!reached) journal.givenUp.add(idOf(uid));
  for (const [result, group] of Map.groupBy(done, (one) => one.result)) {
    const names = group.map(({ name }) => name);
    const rows = group.length > ONE_BY_ONE ? [names] : names.map((name) => [name]);
    for (const row of rows) journal.note(manyTarget(step.type, row), result, finalizer);
  }
  return end.reason === undefined && mine.length > 0 ? 'again' : 'finished';
}

function notDone(reason: string, wrote = false): Done {
  return { wrote, reached: false, result: `not done: ${reason}` };
}

/** The most repeated reads of one object that had changed, or after an unclear answer to a write. */
const MAX_REREADS = 3;
const PAUSE_MS = { first: 1_000, most: 8_000 };

/**
 * Announces and sends one write. After any answer but success the object is read again, and what is there decides. An
 * error may be the answer to a repetition: proxies repeat requests, and servers answer 409 after a success. So a change
 * that is there after a request was sent counts as made by it.
 */
async function write<T extends Named>(
  run: ForceRun,
  step: Step<T>,
  first: T,
  end: { reason: string | undefined },
): Promise<Done> {
  let object = first;
  let wrote = false;
  let rereads = 0;
  let last = '';
  for (let pause = PAUSE_MS.first; ; ) {
    end.reason ??= await step.stop();
    if (end.reason !== undefined) return notDone(`${end.reason}${last}`, wrote);
    // The log has the write before it is sent, in case this process is killed now.
    run.log.line(`${step.doing} ${step.type}/${object.name} (UID ${object.uid})`);
    // No retry here: before a repetition, everything is read again.
    const sent = await run.api.send(step.request(object), { signal: run.signal, retries: 0 });
    if (sent.ok) return { wrote: true, reached: true, result: step.done };
    const { message } = sent.failure;
    const answer = classifyFailure(sent.failure);
    if (answer === 'cut-off') {
      const result = 'interrupted while it was being sent: it may have been done';
      return { wrote: true, reached: false, result };
    }
    if (answer === 'unclear') wrote = true;
    if (answer === 'unclear' || answer === 'throttled') {
      await run.clock.sleep(pause, run.signal);
      pause = Math.min(pause * 2, PAUSE_MS.most);
    }
    const listed = await step.read(object.name);
    if (!listed.ok) return notDone(`${message}; ${listed.failure.message}`, true);
    const now = listed.value.find(({ uid }) => uid === object.uid);
    if (now === undefined || !step.wants(now)) {
      const result = `${step.done}; perhaps by another client, since the answer was: ${message}`;
      return { wrote: true, reached: true, result };
    }
    if (answer === 'refused' || rereads === MAX_REREADS) {
      const tries = rereads > 0 ? ` (read again ${rereads} times)` : '';
      return notDone(`${message}${tries}`, wrote);
    }
    // A busy server has not begun the write: only the time limit of forcing ends these repetitions.
    if (answer !== 'throttled') rereads++;
    last = `; until then: ${message}`;
    object = now;
    end.reason ??= step.veto?.(object);
  }
}

type Answer = 'moved' | 'unclear' | 'throttled' | 'refused' | 'cut-off';

/** The fate of a write that was sent, by its error. */
const ANSWERS: Record<ReadFailure['kind'], Answer> = {
  'not-found': 'moved',
  conflict: 'moved',
  invalid: 'refused',
  forbidden: 'refused',
  unauthorized: 'refused',
  throttled: 'throttled',
  aborted: 'cut-off',
  'server-error': 'unclear',
  timeout: 'unclear',
  network: 'unclear',
  unreadable: 'unclear',
};

function classifyFailure({ kind, message, status }: ReadFailure): Answer {
  // A policy denies with 422, too.
  if (classifyErrorText(message).some((one) => DENIED.test(one.kind))) return 'refused';
  // A 404 may be about the namespace or the type instead of the object. A failed JSON
  // Patch test is 422; so is an object that is no longer valid: the next read decides.
  return status === 404 || status === 422 ? 'moved' : ANSWERS[kind];
}

const DENIED = /^(?:webhook|policy)-denied$/;

/** Calls `ask` at most once per `ms`; many writes share one answer. */
export function atMostEvery<T>(ms: number, clock: Clock, ask: () => Promise<T>): () => Promise<T> {
  let last: { at: number; answer: Promise<T> } | undefined;
  return () => {
    if (last === undefined || clock.now() - last.at >= ms) {
      last = { at: clock.now(), answer: ask() };
    }
    return last.answer;
  };
}
