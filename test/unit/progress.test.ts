import { describe, expect, test } from 'vitest';
import type { Clock } from '../../src/base/time.ts';
import { diagnose } from '../../src/diagnose/diagnose.ts';
import {
  causeText,
  describeRemaining,
  describeStart,
  type Progress,
  startProgress,
} from '../../src/gate/progress.ts';
import type { Condition } from '../../src/model/snapshot.ts';
import { recordTo } from '../stage/gate-run.ts';
import {
  CONFIG_MAPS,
  condition,
  conditions,
  contentOf,
  failureOf,
  group,
  namespaceFacts,
  snapshot,
} from './snapshots.ts';

const START = Date.parse('2026-03-02T10:00:00.000Z');

function watch() {
  const lines: string[] = [];
  let now = START;
  const clock: Clock = { now: () => now, sleep: async () => undefined };
  const log = recordTo(lines);
  const api = { clockOffsetMs: () => 0 };
  const progress = startProgress(namespaceFacts(), { clock, api, log, startedAt: START });
  const at = (ms: number): Progress => {
    now = START + ms;
    return progress;
  };
  return { lines, at };
}

const remaining = (text: string): Condition =>
  condition('NamespaceContentRemaining', 'True', `Some resources are remaining: ${text}`);
const left = (...given: Condition[]) => namespaceFacts({ conditions: conditions(...given) });

const FINALIZERS =
  'Some content in the namespace has finalizers remaining: x/y in 1 resource instances';
const six = ['a', 'b', 'c', 'd', 'e', 'f'].map((name) => `${name}. has 3 resource instances`);

test.each<[given: Condition | undefined, text: string | undefined]>([
  [undefined, undefined],
  [remaining('pods. has 1 resource instances'), '1 object left (1 pods)'],
  [
    remaining('pods. has 2 resource instances, widgets.example.com has 40 resource instances'),
    '42 objects left (40 widgets.example.com, 2 pods)',
  ],
  [remaining(six.join(', ')), '18 objects left (3 a, 3 b, 3 c, 3 d)'],
  [condition('NamespaceFinalizersRemaining', 'True', FINALIZERS), 'finalizers: x/y'],
])('%j is told as %s', (given, text) => {
  expect(describeRemaining(left(...(given ? [given] : [])))).toBe(text);
});

test.each([
  { deletionTimestamp: '2026-03-02T09:59:00Z', text: 'terminating since 2026-03-02T09:59:00Z' },
  { deletionTimestamp: undefined, text: 'its deletion was requested' },
])('the first line of a timeline: $text', ({ deletionTimestamp, text }) => {
  expect(describeStart(namespaceFacts({ deletionTimestamp }))).toBe(text);
});

describe('Progress', () => {
  test('has one line per change, with the time since the start', () => {
    const { lines, at } = watch();
    at(5_000).changed({ last: left(remaining('pods. has 2 resource instances')) });
    at(6_000).changed({ last: left(remaining('pods. has 2 resource instances')) });
    at(65_000).changed({ last: left(remaining('pods. has 1 resource instances')) });
    expect(lines).toEqual([
      '   0:05  preview-7: 2 objects left (2 pods)',
      '   1:05  preview-7: 1 object left (1 pods)',
    ]);
  });

  test('reports a read failure once, and continues after it', () => {
    const { lines, at } = watch();
    const trouble = failureOf({ kind: 'network', message: 'connection refused' });
    at(1_000).changed({ last: namespaceFacts(), trouble });
    at(2_000).changed({ last: namespaceFacts(), trouble });
    at(3_000).changed({ last: left(remaining('pods. has 2 resource instances')) });
    expect(lines).toEqual([
      expect.stringContaining('which does not mean that it was deleted: connection refused'),
      expect.stringContaining('2 objects left'),
    ]);
  });

  test('names the first cause and the number of other causes', () => {
    const content = [
      contentOf(CONFIG_MAPS, [
        group(CONFIG_MAPS, ['a/b'], { names: ['x'] }),
        group(CONFIG_MAPS, ['c/d'], { names: ['y'] }),
      ]),
    ];
    const text = causeText(diagnose(snapshot({ content })));
    expect(text).toMatch(/^ConfigMap x has finalizer a\/b.*\(and 1 more\)$/);
    expect(causeText({ ...diagnose(snapshot()), rootCauses: [] })).toBeUndefined();
  });

  test('keeps a timeline of 50 entries at most, first and last included', () => {
    const { at } = watch();
    for (let index = 1; index < 500; index++) at(index * 1_000).note(`change ${index}`);
    const timeline = at(600_000).end('gone');
    expect(timeline).toHaveLength(50);
    expect(timeline[0]?.event).toMatch(/^terminating since/);
    expect(timeline.at(-1)).toEqual({ at: '2026-03-02T10:10:00.000Z', event: 'gone' });
  });
});
