import { describe, expect, test } from 'vitest';
import { clockTime, withAges } from '../../src/report/ages.ts';

const NOW = '2026-03-02T10:05:02.000Z';

describe('timestamps in sentences', () => {
  test.each([
    { text: 'since 2026-03-02T10:00:11Z and on', told: 'since 10:00:11 UTC (4m 51s ago) and on' },
    { text: '2026-03-02T10:00:11.123456Z', told: '10:00:11 UTC (4m 51s ago)' },
    { text: 'until 2026-03-02T10:10:00Z', told: 'until 10:10:00 UTC (in 4m 58s)' },
    { text: '2026-03-02T10:05:02Z', told: '10:05:02 UTC' },
    { text: '2026-03-01T21:00:00Z', told: '2026-03-01 21:00 UTC (13h 05m ago)' },
    { text: '2026-02-28T09:12:44Z', told: '2026-02-28 09:12 UTC (2 days ago)' },
    { text: '2026-99-99T99:99:99Z', told: '2026-99-99T99:99:99Z' },
    { text: 'x2026-03-02T10:00:11Z', told: 'x2026-03-02T10:00:11Z' },
    { text: 'none', told: 'none' },
  ])('$text', ({ text, told }) => {
    expect(withAges(text, NOW)).toBe(told);
  });

  test('stay as they are when our own clock tells nothing', () => {
    expect(withAges('2026-03-02T10:00:11Z', 'never')).toBe('2026-03-02T10:00:11Z');
  });
});

test.each([
  { iso: NOW, told: '2026-03-02 10:05 UTC' },
  { iso: 'never', told: 'never' },
])('$iso at the foot of a report', ({ iso, told }) => {
  expect(clockTime(iso)).toBe(told);
});
