import { expect, test, vi } from 'vitest';
import { describeError, InputError } from '../../src/base/errors.ts';
import { formatClock, formatDuration, systemClock } from '../../src/base/time.ts';
import { parseDuration } from '../../src/inputs.ts';
import { expectPairs } from '../stub/pairs.ts';

test('durations are read, refused with their input, and shown', () =>
  expectPairs('durations.txt', (line) => {
    const [, what = '', text = ''] = /^(\w+) ?(.*)$/.exec(line) ?? [];
    if (what === 'format') return formatDuration(Number(text));
    if (what === 'clock') return formatClock(Number(text));
    try {
      return parseDuration('timeout', text.replace('\\n', '\n'));
    } catch (error) {
      expect(error).toBeInstanceOf(InputError);
      return describeError(error);
    }
  }));

test('a change of the clock does not end a wait', () => {
  const before = systemClock.now();
  const set = vi.spyOn(Date, 'now').mockReturnValue(before + 3_600_000);
  expect(systemClock.now() - before).toBeLessThan(3_600_000);
  set.mockRestore();
});
