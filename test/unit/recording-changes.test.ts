import { expect, test } from 'vitest';
import { changesBetween } from '../cluster/recording-changes.ts';

const recording = (uid: string, replicas: number, ...holders: string[]) => ({
  takenAt: `2026-01-0${replicas}T10:00:00Z`,
  workloads: [
    {
      name: 'operator',
      uid: `${uid}2f6b1f0e-58f4-4b7e-9d0c-0f3f2f1d0a1b`.slice(-36),
      resourceVersion: uid,
      replicas,
    },
  ],
  pods: [`operator-7c9f6d8b5c-x2z4${uid}`],
  leases: holders.map((holder) => ({ holder })),
});

test('a new recording is told by what has changed in it, not by what is different each time', () => {
  expect(changesBetween(recording('5', 1, 'a'), recording('6', 1, 'a'))).toEqual([]);
  expect(changesBetween(recording('5', 1, 'a'), recording('6', 0, 'b', 'b'))).toEqual([
    '- leases[].holder: "a"',
    '+ leases[].holder: "b" (2 times)',
    '+ workloads[].replicas: 0',
    '- workloads[].replicas: 1',
  ]);
});

test('of very much, a part is told, and how much is left', () => {
  const lines = changesBetween(
    {},
    Object.fromEntries(Array.from({ length: 30 }, (_, i) => [`k${i}`, i])),
  );
  expect(lines).toHaveLength(21);
  expect(lines.at(-1)).toBe('and 10 more');
});
