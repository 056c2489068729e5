import { describe, expect, test } from 'vitest';
import { diagnose } from '../../src/diagnose/diagnose.ts';
import { shrinkingTypes } from '../../src/diagnose/movement.ts';
import type { Movement } from '../../src/model/finding.ts';
import { outcomeOf } from '../../src/model/outcome.ts';
import { readFailed } from '../../src/model/read.ts';
import type { ObjectGroup, Snapshot, TypeContent } from '../../src/model/snapshot.ts';
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
const GAP_MS = 30_000;

/** Movement between two looks at content; unless there is only one. */
function movement(before: TypeContent[] | undefined, now: TypeContent[]): Movement {
  const then = before === undefined ? undefined : earlier(before);
  return diagnose(snapshot({ content: now }), then).movement;
}

const NONE: Movement = { kind: 'none' };
const shrinking = (before: number, now: number): Movement => ({
  kind: 'shrinking',
  before,
  now,
  comparedMs: GAP_MS,
});

type Group = Parameters<typeof group>[2];
/** So many Widgets or ConfigMaps that are held, by one finalizer unless given. */
const widgets = (given: number | Group, finalizers = [CLEANUP]) =>
  group(WIDGETS, finalizers, typeof given === 'number' ? { count: given } : given);
const maps = (given: number | Group, finalizers = [CLEANUP]) =>
  group(CONFIG_MAPS, finalizers, typeof given === 'number' ? { count: given } : given);
const W = (...groups: ObjectGroup[]): TypeContent => contentOf(WIDGETS, groups);
/** ConfigMaps, so many of them queued. */
const C = (queued: number, ...groups: ObjectGroup[]): TypeContent =>
  contentOf(CONFIG_MAPS, groups, queued);

describe('movementOf', () => {
  test('is unknown after a single observation', () => {
    expect(movement(undefined, [C(0, maps(1))])).toEqual({ kind: 'unknown' });
  });

  const by = (manager: string, count: number) => ({ manager, count });
  const inOrder = (...names: string[]) => widgets({ names }, [CLEANUP, OTHER]);
  const reversed = (...names: string[]) => widgets({ names }, [OTHER, CLEANUP]);

  test.each<[what: string, before: TypeContent[], now: TypeContent[], is: Movement]>([
    ['the same object stays', [C(0, maps(1))], [C(0, maps(1))], NONE],
    ['the rest was swept out, and one object stays (S1)', [C(41, maps(1))], [C(0, maps(1))], NONE],
    ['what was queued is now terminating and held', [C(5)], [C(0, maps(5))], NONE],
    ['part of the queue became terminating, none has gone', [C(5)], [C(2, maps(3))], NONE],
    ['another type went away', [W(widgets(1)), C(9)], [W(widgets(1)), C(0)], NONE],
    [
      'another group of the same type went away',
      [C(0, maps(1), maps(9, [OTHER]))],
      [C(0, maps(1))],
      NONE,
    ],
    [
      'two writers of the same finalizer, and nobody removes it',
      [C(0, maps(by('kubectl', 3)), maps(by('operator', 4)))],
      [C(0, maps(by('kubectl', 3)), maps(by('operator', 4)))],
      NONE,
    ],
    [
      'half of the objects got another writer',
      [W(widgets(by('a', 6)))],
      [W(widgets(by('a', 3)), widgets(by('b', 3)))],
      NONE,
    ],
    [
      'the same finalizers in another order',
      [W(inOrder('a', 'b'), reversed('c'))],
      [W(inOrder('a'), reversed('b', 'c'))],
      NONE,
    ],
    ['more objects than before', [W(widgets(3))], [W(widgets(5))], NONE],
    ['a type that could not be read before', [unreadable(WIDGETS)], [W(widgets(5))], NONE],
    ['a type that cannot be read any more', [W(widgets(5))], [unreadable(WIDGETS)], NONE],
    ['a type that was not there before', [], [W(widgets(1))], NONE],
    ['nothing was there and nothing is', [C(0)], [C(0)], NONE],
    ['something could not be read', [W(widgets(1))], [W(), unreadable(CONFIG_MAPS)], NONE],
    [
      'a group of equal objects gets smaller',
      [W(widgets(80))],
      [W(widgets(55))],
      shrinking(80, 55),
    ],
    [
      'one of two groups gets smaller: it alone is counted',
      [W(widgets(80), widgets(7, [OTHER]))],
      [W(widgets(55), widgets(7, [OTHER]))],
      shrinking(80, 55),
    ],
    [
      'objects of two writers go: each object is counted once',
      [W(widgets(by('a', 10)), widgets(by('b', 10)))],
      [W(widgets(by('a', 10)), widgets(by('b', 4)))],
      shrinking(20, 14),
    ],
    [
      'two types get smaller',
      [W(widgets(8)), C(0, maps(4, [OTHER]))],
      [W(widgets(6)), C(0, maps(1, [OTHER]))],
      shrinking(12, 7),
    ],
    ['a queue empties, and objects really go', [C(20)], [C(12)], shrinking(20, 12)],
    [
      'the last object has just gone: the controller finishes with its next pass',
      [W(widgets(1))],
      [W()],
      shrinking(1, 0),
    ],
  ])('when %s', (_, before, now, is) => {
    expect(movement(before, now)).toEqual(is);
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
      ['is not there with a time that cannot be read', end('tomorrow'), UNKNOWN],
      ['is not known without pods', { ...end(LATER), pods: readFailed(failureOf()) }, UNKNOWN],
    ])('%s', (_, now, is) => {
      expect(diagnose(now).movement).toEqual(is);
    });

    test.each([
      [604_800, 'now', '--grace-period=1'],
      [21_600, 'or', '--grace-period=1'],
    ])('of %d s: the role of the remedy that shortens it is %s', (seconds, role, flag) => {
      const now = end(LATER, { deletionGracePeriodSeconds: seconds });
      const found = diagnose(now).findings.find(({ code }) => code === 'pod-grace-period');
      const shorten = found?.remedies.find(({ command }) => command?.includes(flag));
      expect(shorten?.role).toBe(role);
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
  const held = { ...young, content: [C(0, maps(1, ['x/y']))] };
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
  const verdict = (content: TypeContent[]): string => {
    const diagnosis = diagnose(snapshot({ namespace: cutOff, content }));
    return `${diagnosis.movement.kind} ${outcomeOf(diagnosis)}`;
  };

  test.each([
    ['is slow, not stuck', [C(100_000)], 'retrying progressing'],
    ['is stuck when something holds one', [C(99_999, maps(1, ['x/y']))], 'unknown stuck'],
    [
      'is not slow while something is unread',
      [C(100_000), unreadable(WIDGETS)],
      'unknown inconclusive',
    ],
  ])('%s', (_, content, is) => {
    expect(verdict(content)).toBe(is);
  });
});

describe('a type that becomes smaller is no cause, an unchanged one is', () => {
  const blamed = (before: TypeContent[], now: TypeContent[]): string[] =>
    diagnose(snapshot({ content: now }), earlier(before)).findings.map(
      ({ code, subject, count = 1 }) => `${code} ${subject.name} ${count}`,
    );

  const stays = widgets({ names: ['db'] }, [OTHER]);
  const both = [
    maps({ names: ['a', 'b'], manager: 'kubectl' }, [OTHER]),
    maps({ names: ['c', 'd'], manager: 'helm' }, [OTHER]),
  ];

  test.each<[what: string, before: TypeContent[], now: TypeContent[], are: string[]]>([
    [
      '80 objects that go one by one',
      [W(widgets(80))],
      [W(widgets(55))],
      ['content-deleting widgets.example.com 55'],
    ],
    [
      'a group that shrinks beside one that stays',
      [W(widgets(80), stays)],
      [W(widgets(55), stays)],
      ['owner-unknown db 1', 'object-finalizer db 1', 'content-deleting widgets.example.com 55'],
    ],
    [
      'two writers of one finalizer, none of whom removes it',
      [C(0, ...both)],
      [C(0, ...both)],
      ['owner-unknown a 1', 'owner-unknown c 1', 'object-finalizer a 2', 'object-finalizer c 2'],
    ],
  ])('%s', (_, before, now, are) => {
    expect(blamed(before, now)).toEqual(are);
  });
});

describe('shrinkingTypes', () => {
  test('returns each set of finalizers once, whatever its writers', () => {
    const many = (count: number): TypeContent =>
      W(
        widgets({ count, manager: 'a' }, [CLEANUP, OTHER]),
        widgets({ count, manager: 'b' }, [OTHER, CLEANUP]),
      );
    const found = shrinkingTypes(earlier([many(9)]), snapshot({ content: [many(5)] }));
    expect(found.map(({ before, now, finalizers }) => ({ before, now, finalizers }))).toEqual([
      { before: 18, now: 10, finalizers: [CLEANUP, OTHER] },
    ]);
  });
});
