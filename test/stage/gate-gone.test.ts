import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { JsonObject } from '../../src/base/json.ts';
import type { WatchEvent } from '../../src/kubernetes/api.ts';
import { type Read, readFailed, readOk } from '../../src/model/read.ts';
import {
  BROKEN,
  CONFIG_MAPS,
  CONFLICT,
  FORBIDDEN,
  NOT_FOUND,
  pathOf,
  REFUSED,
  UNAUTHORIZED,
  type WatchMode,
} from './fake-cluster.ts';
import { DEMO, stage } from './gate-run.ts';

const GET = `GET ${pathOf.namespace(DEMO)}`;
const UID = `uid-of-${DEMO}`;

/** Everything that a GET of the namespace may come back with. */
const ANSWERS = {
  'the namespace': () => readOk(namespace(UID, '7')),
  'the namespace, changed': () => readOk(namespace(UID, '8')),
  'another namespace': () => readOk(namespace('another', '9')),
  'a namespace without a UID': () => readOk({ kind: 'Namespace', metadata: { name: DEMO } }),
  'an empty object': () => readOk({}),
  '404': () => readFailed(NOT_FOUND),
  '404 of a gateway': () => readFailed({ ...NOT_FOUND, kind: 'unreadable' as const }),
  '403': () => readFailed(FORBIDDEN),
  '500': () => readFailed(BROKEN),
  '409': () => readFailed(CONFLICT),
  '429': () => readFailed({ kind: 'throttled' as const, status: 429, message: '429' }),
  'a timeout': () => readFailed({ kind: 'timeout' as const, message: 'no answer' }),
  'a broken network': () => readFailed(REFUSED),
  '401': () => readFailed(UNAUTHORIZED),
} satisfies Record<string, () => Read<JsonObject>>;

type AnswerName = keyof typeof ANSWERS;
/** What ends the wait, and how. */
const DECISIVE: Partial<Record<AnswerName, string>> = {
  '404': 'deleted',
  'another namespace': 'recreated',
  '401': 'inconclusive',
};

const isEnd = (name: AnswerName | undefined): boolean =>
  name === '404' || name === 'another namespace';

interface Given {
  name: AnswerName;
  /** Whether a watch had reported the deletion, and no answer since that it is there. */
  isTold: boolean;
}

/**
 * One 401 may come from a server that has just restarted, and one 404 from a stale one: the next answer decides, or a
 * watch that has told of the deletion. The answer after an end that was not confirmed begins anew.
 */
function decisiveIn(given: readonly Given[]): AnswerName | undefined {
  for (let index = 0; index < given.length; index++) {
    const { name, isTold } = given[index] as Given;
    const next = given[index + 1]?.name;
    if (name === '401' && next === '401') return next;
    if (!isEnd(name)) continue;
    if (isTold) return name;
    if (isEnd(next)) return next;
    // The failure of the second read is the last answer.
    if (next !== '401') index++;
  }
  return undefined;
}

/** What a watch may send, true or not. */
const EVENTS: Record<string, WatchEvent> = {
  'deleted, this one': { type: 'DELETED', object: namespace(UID, '7') },
  'deleted, another one': { type: 'DELETED', object: namespace('another', '9') },
  'added, another one': { type: 'ADDED', object: namespace('another', '9') },
  'changed, this one': { type: 'MODIFIED', object: namespace(UID, '8') },
  'changed, another one': { type: 'MODIFIED', object: namespace('another', '9') },
  'a bookmark': { type: 'BOOKMARK', object: { metadata: { name: DEMO, resourceVersion: '5' } } },
  'an error': { type: 'ERROR', object: { metadata: { name: DEMO }, code: 410 } },
  nonsense: { type: 'DELETED', object: { metadata: { name: DEMO, uid: 7 } } as JsonObject },
};

function namespace(uid: string, resourceVersion: string): JsonObject {
  return {
    apiVersion: 'v1',
    kind: 'Namespace',
    metadata: { name: DEMO, uid, resourceVersion, deletionTimestamp: '2026-03-02T09:59:00Z' },
    spec: { finalizers: ['kubernetes'] },
    status: { phase: 'Terminating', conditions: [] },
  };
}

interface Story {
  /** Answers to the GETs after the first one; when they run out, the namespace stays as it is. */
  answers: AnswerName[];
  events: { atMs: number; name: string }[];
  mode: WatchMode;
  failFast: boolean;
}

/** The outcome, and the answers that were really asked for. */
async function tell(story: Story): Promise<{ outcome: string; given: Given[] }> {
  const { clock, cluster, runOne } = stage(DEMO);
  cluster.held(CONFIG_MAPS, DEMO, 'precious', 'some.random/finalizer');
  cluster.watchMode = story.mode;
  const given: Given[] = [];
  let isTold = false;
  cluster.answers.set(GET, (count) => {
    const name: AnswerName =
      count === 0 ? 'the namespace' : (story.answers[count - 1] ?? 'the namespace');
    given.push({ name, isTold });
    if (name.startsWith('the namespace')) isTold = false;
    return ANSWERS[name]();
  });
  for (const { atMs, name } of story.events) {
    const event = EVENTS[name];
    if (event === undefined) continue;
    clock.at(atMs, () => {
      isTold ||= name === 'deleted, this one' && story.mode === 'fed';
      cluster.feed(event);
    });
  }
  const { outcome } = await runOne({ timeout: '3m', 'fail-fast': String(story.failFast) });
  expect(cluster.mutations).toEqual([]);
  expect(clock.sleepers - story.events.length).toBeLessThanOrEqual(0);
  return { outcome, given };
}

const stories = fc.record({
  answers: fc.array(
    fc.oneof(
      {
        weight: 6,
        arbitrary: fc.constantFrom<AnswerName>('the namespace', '403', '500', 'a timeout'),
      },
      { weight: 3, arbitrary: fc.constantFrom(...(Object.keys(ANSWERS) as AnswerName[])) },
    ),
    { maxLength: 25 },
  ),
  events: fc.array(
    fc.record({
      atMs: fc.integer({ min: 1, max: 170_000 }),
      name: fc.constantFrom(...Object.keys(EVENTS)),
    }),
    { maxLength: 6 },
  ),
  mode: fc.constantFrom<WatchMode>('fed', 'silent', 'mute', 'forbidden', 'ends'),
  failFast: fc.boolean(),
});

describe('for any answers of the API server, in any order', () => {
  test('the first answer that proves an end decides the outcome', async () => {
    await fc.assert(
      fc.asyncProperty(stories, async (story) => {
        const { outcome, given } = await tell(story);
        const first = decisiveIn(given);
        if (first === undefined) {
          expect(['stuck', 'inconclusive', 'progressing']).toContain(outcome);
        } else {
          expect(outcome).toBe(DECISIVE[first]);
        }
      }),
      {
        numRuns: 100,
        examples: [[{ answers: ['401', '404', '401'], events: [], mode: 'fed', failFast: false }]],
      },
    );
  });

  test.each(Object.keys(ANSWERS) as AnswerName[])('%s, for the rest of the wait', async (name) => {
    for (const mode of ['fed', 'silent', 'forbidden'] as const) {
      const answers = Array.from({ length: 400 }, () => name);
      const { outcome } = await tell({ answers, events: [], mode, failFast: false });
      const wanted = DECISIVE[name];
      if (wanted === undefined) expect(outcome).toMatch(/^(?:stuck|inconclusive)$/);
      else expect(outcome).toBe(wanted);
    }
  });

  test.each(Object.keys(EVENTS))('a watch event "%s" alone decides nothing', async (name) => {
    const events = [{ atMs: 20_000, name }];
    const { outcome } = await tell({ answers: [], events, mode: 'fed', failFast: false });
    expect(outcome).toBe('stuck');
  });
});
