import { describe, expect, test } from 'vitest';
import { diagnose } from '../../src/diagnose/diagnose.ts';
import { shrinkingTypes } from '../../src/diagnose/movement.ts';
import type { Movement } from '../../src/model/finding.ts';
import { outcomeOf } from '../../src/model/outcome.ts';
import { failed } from '../../src/model/read.ts';
import type { Snapshot, TypeContent } from '../../src/model/snapshot.ts';
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
  objectFacts,
  podFacts,
  snapshot,
  unreadable,
  WIDGETS,
  withPods,
} from './snapshots.ts';

const OTHER = 'other.example.com/cleanup';
const GAP_MS = 30_000;

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

describe('movementOf', () => {
  test('is unknown after a single look', () => {
    expect(movement(undefined, [contentOf(CONFIG_MAPS, [group(CONFIG_MAPS, [CLEANUP])])])).toEqual({
      kind: 'unknown',
    });
  });

  test.each<{ what: string; before: TypeContent[]; now: TypeContent[]; is: Movement }>([
    {
      what: 'the same object stays',
      before: [contentOf(CONFIG_MAPS, [group(CONFIG_MAPS, [CLEANUP])])],
      now: [contentOf(CONFIG_MAPS, [group(CONFIG_MAPS, [CLEANUP])])],
      is: NONE,
    },
    {
      what: 'the rest was swept out, and one object stays (S1)',
      before: [contentOf(CONFIG_MAPS, [group(CONFIG_MAPS, [CLEANUP])], 41)],
      now: [contentOf(CONFIG_MAPS, [group(CONFIG_MAPS, [CLEANUP])])],
      is: NONE,
    },
    {
      what: 'what was queued is now terminating and held',
      before: [contentOf(CONFIG_MAPS, [], 5)],
      now: [contentOf(CONFIG_MAPS, [group(CONFIG_MAPS, [CLEANUP], { count: 5 })])],
      is: NONE,
    },
    {
      what: 'part of the queue became terminating, none has gone',
      before: [contentOf(CONFIG_MAPS, [], 5)],
      now: [contentOf(CONFIG_MAPS, [group(CONFIG_MAPS, [CLEANUP], { count: 3 })], 2)],
      is: NONE,
    },
    {
      what: 'another type went away, and the held object stays',
      before: [contentOf(WIDGETS, [group(WIDGETS, [CLEANUP])]), contentOf(CONFIG_MAPS, [], 9)],
      now: [contentOf(WIDGETS, [group(WIDGETS, [CLEANUP])]), contentOf(CONFIG_MAPS)],
      is: NONE,
    },
    {
      what: 'another group of the same type went away',
      before: [
        contentOf(CONFIG_MAPS, [
          group(CONFIG_MAPS, [CLEANUP]),
          group(CONFIG_MAPS, [OTHER], { count: 9 }),
        ]),
      ],
      now: [contentOf(CONFIG_MAPS, [group(CONFIG_MAPS, [CLEANUP])])],
      is: NONE,
    },
    {
      what: 'two writers of the same finalizer, and nobody removes it',
      before: [
        contentOf(CONFIG_MAPS, [
          group(CONFIG_MAPS, [CLEANUP], { count: 3, manager: 'kubectl' }),
          group(CONFIG_MAPS, [CLEANUP], { count: 4, manager: 'operator' }),
        ]),
      ],
      now: [
        contentOf(CONFIG_MAPS, [
          group(CONFIG_MAPS, [CLEANUP], { count: 3, manager: 'kubectl' }),
          group(CONFIG_MAPS, [CLEANUP], { count: 4, manager: 'operator' }),
        ]),
      ],
      is: NONE,
    },
    {
      what: 'half of the objects got another writer',
      before: [contentOf(WIDGETS, [group(WIDGETS, [CLEANUP], { count: 6, manager: 'a' })])],
      now: [
        contentOf(WIDGETS, [
          group(WIDGETS, [CLEANUP], { count: 3, manager: 'a' }),
          group(WIDGETS, [CLEANUP], { count: 3, manager: 'b' }),
        ]),
      ],
      is: NONE,
    },
    {
      what: 'the same finalizers in another order',
      before: [
        contentOf(WIDGETS, [
          group(WIDGETS, [CLEANUP, OTHER], { names: ['a', 'b'] }),
          group(WIDGETS, [OTHER, CLEANUP], { names: ['c'] }),
        ]),
      ],
      now: [
        contentOf(WIDGETS, [
          group(WIDGETS, [CLEANUP, OTHER], { names: ['a'] }),
          group(WIDGETS, [OTHER, CLEANUP], { names: ['b', 'c'] }),
        ]),
      ],
      is: NONE,
    },
    {
      what: 'more objects than before',
      before: [contentOf(WIDGETS, [group(WIDGETS, [CLEANUP], { count: 3 })])],
      now: [contentOf(WIDGETS, [group(WIDGETS, [CLEANUP], { count: 5 })])],
      is: NONE,
    },
    {
      what: 'a type that could not be read before',
      before: [unreadable(WIDGETS)],
      now: [contentOf(WIDGETS, [group(WIDGETS, [CLEANUP], { count: 5 })])],
      is: NONE,
    },
    {
      what: 'a type that cannot be read any more',
      before: [contentOf(WIDGETS, [group(WIDGETS, [CLEANUP], { count: 5 })])],
      now: [unreadable(WIDGETS)],
      is: NONE,
    },
    {
      what: 'a type that was not there before',
      before: [],
      now: [contentOf(WIDGETS, [group(WIDGETS, [CLEANUP])])],
      is: NONE,
    },
    {
      what: 'nothing was there and nothing is',
      before: [contentOf(CONFIG_MAPS)],
      now: [contentOf(CONFIG_MAPS)],
      is: NONE,
    },
  ])('is none when $what', ({ before, now, is }) => {
    expect(movement(before, now)).toEqual(is);
  });

  test.each<{ what: string; before: TypeContent[]; now: TypeContent[]; is: Movement }>([
    {
      what: 'a group of equal objects gets smaller',
      before: [contentOf(WIDGETS, [group(WIDGETS, [CLEANUP], { count: 80 })])],
      now: [contentOf(WIDGETS, [group(WIDGETS, [CLEANUP], { count: 55 })])],
      is: shrinking(80, 55),
    },
    {
      what: 'one of two groups gets smaller: it alone is counted',
      before: [
        contentOf(WIDGETS, [
          group(WIDGETS, [CLEANUP], { count: 80 }),
          group(WIDGETS, [OTHER], { count: 7 }),
        ]),
      ],
      now: [
        contentOf(WIDGETS, [
          group(WIDGETS, [CLEANUP], { count: 55 }),
          group(WIDGETS, [OTHER], { count: 7 }),
        ]),
      ],
      is: shrinking(80, 55),
    },
    {
      what: 'objects of two writers go: each object is counted once',
      before: [
        contentOf(WIDGETS, [
          group(WIDGETS, [CLEANUP], { count: 10, manager: 'a' }),
          group(WIDGETS, [CLEANUP], { count: 10, manager: 'b' }),
        ]),
      ],
      now: [
        contentOf(WIDGETS, [
          group(WIDGETS, [CLEANUP], { count: 10, manager: 'a' }),
          group(WIDGETS, [CLEANUP], { count: 4, manager: 'b' }),
        ]),
      ],
      is: shrinking(20, 14),
    },
    {
      what: 'two types get smaller',
      before: [
        contentOf(WIDGETS, [group(WIDGETS, [CLEANUP], { count: 8 })]),
        contentOf(CONFIG_MAPS, [group(CONFIG_MAPS, [OTHER], { count: 4 })]),
      ],
      now: [
        contentOf(WIDGETS, [group(WIDGETS, [CLEANUP], { count: 6 })]),
        contentOf(CONFIG_MAPS, [group(CONFIG_MAPS, [OTHER], { count: 1 })]),
      ],
      is: shrinking(12, 7),
    },
    {
      what: 'an object loses one of its two finalizers',
      before: [contentOf(WIDGETS, [group(WIDGETS, [CLEANUP, OTHER], { names: ['db'] })])],
      now: [contentOf(WIDGETS, [group(WIDGETS, [OTHER], { names: ['db'] })])],
      is: shrinking(1, 1),
    },
    {
      what: 'a queue empties, and objects really go',
      before: [contentOf(CONFIG_MAPS, [], 20)],
      now: [contentOf(CONFIG_MAPS, [], 12)],
      is: shrinking(20, 12),
    },
    {
      what: 'the last object has just gone: the controller finishes with its next pass',
      before: [contentOf(WIDGETS, [group(WIDGETS, [CLEANUP])])],
      now: [contentOf(WIDGETS)],
      is: shrinking(1, 0),
    },
  ])('is shrinking when $what', ({ before, now, is }) => {
    expect(movement(before, now)).toEqual(is);
  });

  test('does not call it the last object when something could not be read', () => {
    const before = [contentOf(WIDGETS, [group(WIDGETS, [CLEANUP])])];
    expect(movement(before, [contentOf(WIDGETS), unreadable(CONFIG_MAPS)])).toEqual(NONE);
  });

  describe('grace periods', () => {
    const end = (given: string, over = {}): Snapshot =>
      withPods([podFacts('web', { deletionTimestamp: given, ...over })]);

    test.each<{ what: string; now: Snapshot; is: Movement }>([
      {
        what: 'runs until the latest of its pods ends',
        now: withPods([
          podFacts('a', { deletionTimestamp: '2026-03-02T10:05:00Z' }),
          podFacts('b', { deletionTimestamp: '2026-03-02T10:09:00Z' }),
          podFacts('c', { deletionTimestamp: '2026-03-02T10:00:30Z' }),
        ]),
        is: { kind: 'grace-period', until: '2026-03-02T10:09:00Z' },
      },
      {
        what: 'leaves the kubelet a moment to confirm',
        now: end('2026-03-02T10:01:26Z'),
        is: { kind: 'grace-period', until: '2026-03-02T10:01:26Z' },
      },
      { what: 'is over after that', now: end('2026-03-02T10:01:25Z'), is: { kind: 'unknown' } },
      {
        what: 'does not count for a pod that no node has',
        now: end('2026-03-02T10:09:00Z', { nodeName: undefined }),
        is: { kind: 'unknown' },
      },
      {
        what: 'does not count when it is 0',
        now: end('2026-03-02T10:09:00Z', { deletionGracePeriodSeconds: 0 }),
        is: { kind: 'unknown' },
      },
      {
        what: 'does not count for a pod with a time that cannot be read',
        now: end('tomorrow'),
        is: { kind: 'unknown' },
      },
      {
        what: 'is not known when pods cannot be listed',
        now: { ...end('2026-03-02T10:09:00Z'), pods: failed(failureOf()) },
        is: { kind: 'unknown' },
      },
    ])('$what', ({ now, is }) => {
      expect(diagnose(now).movement).toEqual(is);
    });
  });
});

describe('a hang that is not one yet', () => {
  const silent = (deletionTimestamp: string) =>
    snapshot({ namespace: namespaceFacts({ conditions: [], deletionTimestamp }) });
  const complaining = (statusWrittenAt: string, message = 'anything') =>
    snapshot({
      namespace: namespaceFacts({
        statusWrittenAt,
        conditions: conditions(condition('NamespaceDeletionContentFailure', 'True', message)),
      }),
    });

  test.each<{ what: string; now: Snapshot; is: string; outcome: string }>([
    {
      what: 'the controller has not begun',
      now: silent('2026-03-02T10:01:20Z'),
      is: 'starting',
      outcome: 'progressing',
    },
    {
      what: 'the controller should have begun',
      now: silent('2026-03-02T10:01:10Z'),
      is: 'unknown',
      outcome: 'stuck',
    },
    {
      what: 'what the conditions complain about is fixed, and the next try is near',
      now: complaining('2026-03-02T10:00:31Z'),
      is: 'retrying',
      outcome: 'progressing',
    },
    {
      what: 'the conditions complain for longer than a retry takes',
      now: complaining('2026-03-02T09:59:59Z'),
      is: 'unknown',
      outcome: 'stuck',
    },
    {
      what: 'something holds it, however young it is',
      now: {
        ...silent('2026-03-02T10:01:20Z'),
        content: [contentOf(CONFIG_MAPS, [group(CONFIG_MAPS, ['x/y'])])],
      },
      is: 'unknown',
      outcome: 'stuck',
    },
    {
      what: 'something could not be read, however young it is',
      now: snapshot({
        namespace: silent('2026-03-02T10:01:20Z').namespace,
        content: [unreadable(CONFIG_MAPS)],
      }),
      is: 'unknown',
      outcome: 'inconclusive',
    },
  ])('$what: $is', ({ now, is, outcome }) => {
    const diagnosis = diagnose(now);
    expect(diagnosis.movement.kind).toBe(is);
    expect(outcomeOf(diagnosis)).toBe(outcome);
    expect(diagnosis.findings.map(({ code }) => code)).not.toContain(
      is === 'unknown' ? 'content-deleting' : 'unexplained',
    );
  });
});

describe('more objects than one request of the namespace controller can delete, seen once', () => {
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

  test('is slow, not stuck', () => {
    expect(verdict([contentOf(CONFIG_MAPS, [], 100_000)])).toBe('retrying progressing');
  });

  test('is stuck when something holds one of them', () => {
    const held = [group(CONFIG_MAPS, ['x/y'])];
    expect(verdict([contentOf(CONFIG_MAPS, held, 99_999)])).toBe('unknown stuck');
  });

  test('is not called slow while something could not be read', () => {
    const content = [contentOf(CONFIG_MAPS, [], 100_000), unreadable(WIDGETS)];
    expect(verdict(content)).toBe('unknown stuck');
  });
});

describe('what shrinks is not blamed, what stays is', () => {
  const blamed = (before: TypeContent[], now: TypeContent[]): string[] =>
    diagnose(snapshot({ content: now }), earlier(before)).findings.map(
      ({ code, subject, count = 1 }) => `${code} ${subject.name} ${count}`,
    );

  test('80 objects that go one by one', () => {
    expect(
      blamed(
        [contentOf(WIDGETS, [group(WIDGETS, [CLEANUP], { count: 80 })])],
        [contentOf(WIDGETS, [group(WIDGETS, [CLEANUP], { count: 55 })])],
      ),
    ).toEqual(['content-deleting widgets.example.com 55']);
  });

  test('a group that shrinks beside one that stays', () => {
    const stays = group(WIDGETS, [OTHER], { names: ['db'] });
    expect(
      blamed(
        [contentOf(WIDGETS, [group(WIDGETS, [CLEANUP], { count: 80 }), stays])],
        [contentOf(WIDGETS, [group(WIDGETS, [CLEANUP], { count: 55 }), stays])],
      ),
    ).toEqual([
      'owner-unknown db 1',
      'object-finalizer db 1',
      'content-deleting widgets.example.com 55',
    ]);
  });

  test('two writers of one finalizer, none of whom removes it', () => {
    const both = [
      group(CONFIG_MAPS, [OTHER], { names: ['a', 'b'], manager: 'kubectl' }),
      group(CONFIG_MAPS, [OTHER], { names: ['c', 'd'], manager: 'helm' }),
    ];
    expect(blamed([contentOf(CONFIG_MAPS, both)], [contentOf(CONFIG_MAPS, both)])).toEqual(
      [
        'object-finalizer a 2',
        'object-finalizer c 2',
        'owner-unknown a 1',
        'owner-unknown c 1',
      ].sort((a, b) => Number(a.startsWith('object')) - Number(b.startsWith('object'))),
    );
  });
});

describe('shrinkingTypes', () => {
  test('names each set of finalizers once, however many writers it has', () => {
    const many = (count: number): TypeContent =>
      contentOf(WIDGETS, [
        group(WIDGETS, [CLEANUP, OTHER], { count, manager: 'a' }),
        group(WIDGETS, [OTHER, CLEANUP], { count, manager: 'b' }),
      ]);
    const found = shrinkingTypes(earlier([many(9)]), snapshot({ content: [many(5)] }));
    expect(found.map(({ before, now, finalizers }) => ({ before, now, finalizers }))).toEqual([
      { before: 18, now: 10, finalizers: [CLEANUP, OTHER] },
    ]);
  });

  test('does not take objects without a UID for one and the same', () => {
    const nameless = (finalizers: string[]) => ({
      ...group(WIDGETS, finalizers),
      examples: [objectFacts(WIDGETS, 'db', { uid: '', finalizers })],
    });
    const content = [contentOf(WIDGETS, [nameless([CLEANUP]), nameless([CLEANUP, OTHER])])];
    expect(shrinkingTypes(earlier(content), snapshot({ content }))).toEqual([]);
  });
});
