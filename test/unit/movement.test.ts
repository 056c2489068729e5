import { describe, expect, test } from 'vitest';
import { diagnose } from '../../src/diagnose/diagnose.ts';
import type { Movement } from '../../src/model/finding.ts';
import { outcomeOf } from '../../src/model/outcome.ts';
import { readFailed, readOk } from '../../src/model/read.ts';
import type { Snapshot, TypeContent } from '../../src/model/snapshot.ts';
import { expectPairs } from '../stub/pairs.ts';
import {
  CLEANUP,
  CONFIG_MAPS,
  condition,
  conditions,
  contentOf,
  earlier,
  failureOf,
  group,
  namespaceFacts,
  podFacts,
  snapshot,
  unreadable,
  WIDGETS,
  withPods,
} from './snapshots.ts';

const OTHER = 'other.example.com/cleanup';

/**
 * Widgets and ConfigMaps: `W 80 7/o, C q5 3@kubectl`. So many of them held by one finalizer, or by another one, written
 * by somebody; queued; or not to be read (`?`).
 */
function contents(text: string): TypeContent[] {
  return text.split(', ').flatMap((part) => {
    const [kind, ...terms] = part.split(' ');
    const type = kind === 'W' ? WIDGETS : CONFIG_MAPS;
    if (terms[0] === '?') return [unreadable(type)];
    const queued = terms.find((term) => term.startsWith('q'))?.slice(1) ?? 0;
    const groups = terms.flatMap((term) => {
      const [, count, other, manager] = /^(\d+)(\/o)?(?:@(\w+))?$/.exec(term) ?? [];
      const by = manager === undefined ? {} : { manager };
      return count === undefined
        ? []
        : [group(type, [other ? OTHER : CLEANUP], { count: Number(count), ...by })];
    });
    return kind === '-' ? [] : [contentOf(type, groups, Number(queued))];
  });
}

/** Movement between two looks at content. */
function movement(before: TypeContent[], now: TypeContent[]): Movement {
  return diagnose(snapshot({ content: now }), earlier(before)).movement;
}

describe('movementOf', () => {
  test('between two looks', () =>
    expectPairs('movements.txt', (line) => {
      const [before = '', now = ''] = line.split(' -> ');
      return movement(contents(before), contents(now));
    }));

  test('when the same finalizers are in another order, nothing moves', () => {
    const held = (order: string[], ...names: string[]) => group(WIDGETS, order, { names });
    const [one, other] = [
      [CLEANUP, OTHER],
      [OTHER, CLEANUP],
    ] as const;
    const before = [contentOf(WIDGETS, [held([...one], 'a', 'b'), held([...other], 'c')])];
    const now = [contentOf(WIDGETS, [held([...one], 'a'), held([...other], 'b', 'c')])];
    expect(movement(before, now)).toEqual({ kind: 'none' });
  });

  describe('grace periods', () => {
    const LATER = '2026-03-02T10:09:00Z';
    const end = (given: string, over = {}): Snapshot =>
      withPods([podFacts('web', { deletionTimestamp: given, ...over })]);

    const UNKNOWN: Movement = { kind: 'unknown' };
    const until = (end: string): Movement => ({ kind: 'grace-period', until: end });

    test.each<[what: string, now: Snapshot, is: Movement]>([
      [
        'runs until the latest of its pods ends',
        withPods(
          ['10:05:00', '10:09:00', '10:00:30'].map((time, at) =>
            podFacts(`${at}`, { deletionTimestamp: `2026-03-02T${time}Z` }),
          ),
        ),
        until('2026-03-02T10:09:00Z'),
      ],
      [
        'leaves the kubelet a moment to confirm',
        end('2026-03-02T10:01:26Z'),
        until('2026-03-02T10:01:26Z'),
      ],
      ['is over after that', end('2026-03-02T10:01:25Z'), UNKNOWN],
      [
        'is over with grace 0, by which its kubelet confirms',
        end(LATER, { deletionGracePeriodSeconds: 0 }),
        UNKNOWN,
      ],
      ['is not for a pod without a node', end(LATER, { nodeName: undefined }), UNKNOWN],
      [
        'runs for a pod whose node was deleted: the pod garbage collector ends it',
        { ...end(LATER), nodes: { 'node-1': readOk(undefined) } },
        until(LATER),
      ],
      ['is not there with a time that cannot be read', end('tomorrow'), UNKNOWN],
      ['is not known without pods', { ...end(LATER), pods: readFailed(failureOf()) }, UNKNOWN],
    ])('%s', (_, now, is) => {
      expect(diagnose(now).movement).toEqual(is);
    });

    test.each([
      [604_800, 'now', '--grace-period=0'],
      [21_600, 'or', '--grace-period=0'],
    ])('of %d s: the role of the remedy that shortens it is %s', (seconds, role, flag) => {
      const now = end(LATER, { deletionGracePeriodSeconds: seconds });
      const found = diagnose(now).findings.find(({ code }) => code === 'pod-grace-period');
      const shorten = found?.remedies.find(({ command }) => command?.includes(flag));
      expect(shorten?.role).toBe(role);
      expect(shorten?.text).toMatch(/; Kubernetes looks at the namespace again within 5 minutes$/);
      // A week is not waited for.
      expect(/timeout/.test(JSON.stringify(found?.remedies))).toBe(role === 'or');
      expect(found?.remedies.filter((one) => one.role === 'now')).toHaveLength(1);
    });
  });
});

describe('a namespace that does not hang yet', () => {
  const silent = (deletionTimestamp: string) =>
    snapshot({ namespace: namespaceFacts({ conditions: [], deletionTimestamp }) });
  const complaining = (statusWrittenAt: string, message = 'anything') =>
    snapshot({
      namespace: namespaceFacts({
        statusWrittenAt,
        conditions: conditions(condition('NamespaceDeletionContentFailure', 'True', message)),
      }),
    });

  const young = silent('2026-03-02T10:01:20Z');
  const held = { ...young, content: contents('C 1') };
  const partly = snapshot({ namespace: young.namespace, content: [unreadable(CONFIG_MAPS)] });

  test.each<[what: string, now: Snapshot, is: string, outcome: string]>([
    ['the controller has not begun', young, 'starting', 'progressing'],
    ['the controller should have begun', silent('2026-03-02T10:01:10Z'), 'unknown', 'stuck'],
    [
      'what the conditions complain about is fixed, and the next try is near',
      complaining('2026-03-02T10:00:31Z'),
      'retrying',
      'progressing',
    ],
    [
      'the conditions complain for longer than a retry takes',
      complaining('2026-03-02T09:59:59Z'),
      'unknown',
      'stuck',
    ],
    ['something holds it, however young it is', held, 'unknown', 'stuck'],
    ['something could not be read, however young it is', partly, 'unknown', 'inconclusive'],
  ])('%s', (_, now, is, outcome) => {
    const diagnosis = diagnose(now);
    expect(diagnosis.movement.kind).toBe(is);
    expect(outcomeOf(diagnosis)).toBe(outcome);
    expect(diagnosis.findings.map(({ code }) => code)).not.toContain(
      is === 'unknown' ? 'content-deleting' : 'unexplained',
    );
  });
});

describe('more objects than one request of the namespace controller can delete, observed once', () => {
  const cutOff = namespaceFacts({
    conditions: [
      condition(
        'NamespaceDeletionContentFailure',
        'True',
        'Failed to delete all resource types, 1 remaining: the server was unable to return a response in the time allotted, but may still be processing the request',
      ),
    ],
  });
  test.each([
    ['is slow, not stuck', 'C q100000', 'retrying progressing'],
    ['is stuck when something holds one', 'C q99999 1', 'unknown stuck'],
    ['is not slow while something is unread', 'C q100000, W ?', 'unknown inconclusive'],
  ])('%s', (_, content, is) => {
    const diagnosis = diagnose(snapshot({ namespace: cutOff, content: contents(content) }));
    expect(`${diagnosis.movement.kind} ${outcomeOf(diagnosis)}`).toBe(is);
  });
});

test.each<[what: string, before: string, now: string, are: string[]]>([
  ['80 objects that go one by one', 'W 80', 'W 55', ['content-deleting widgets.example.com 55']],
  [
    'a group that shrinks beside one that stays',
    ...(['W 80 1/o', 'W 55 1/o'] as const),
    [
      ...['owner-unknown widgets-0 1', 'object-finalizer widgets-0 1'],
      'content-deleting widgets.example.com 55',
    ],
  ],
  [
    'each set of finalizers once, whatever its writers',
    ...(['W 9@a 9@b', 'W 5@a 5@b'] as const),
    ['content-deleting widgets.example.com 10'],
  ],
])('a type that becomes smaller is no cause, an unchanged one is: %s', (_, before, now, are) => {
  const diagnosis = diagnose(snapshot({ content: contents(now) }), earlier(contents(before)));
  const blamed = diagnosis.findings.map(
    ({ code, subject, count = 1 }) => `${code} ${subject.name} ${count}`,
  );
  expect(blamed).toEqual(are);
});
