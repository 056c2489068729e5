import { describe, expect, test } from 'vitest';
import { formatClock, formatDuration, parseDuration } from '../../src/base/time.ts';

describe('parseDuration', () => {
  test.each([
    { text: '90s', ms: 90_000 },
    { text: '10m', ms: 600_000 },
    { text: '1h', ms: 3_600_000 },
    { text: '0s', ms: 0 },
    { text: '007m', ms: 420_000 },
    { text: '120h', ms: 432_000_000 },
    { text: '432000s', ms: 432_000_000 },
  ])('reads $text as $ms ms', ({ text, ms }) => {
    expect(parseDuration('timeout', text)).toBe(ms);
  });

  test.each([
    { text: '', why: 'empty' },
    { text: '10', why: 'no unit' },
    { text: '1.5m', why: 'a fraction' },
    { text: '-5m', why: 'negative' },
    { text: '5 m', why: 'a space' },
    { text: '5m\n', why: 'a line end' },
    { text: '٥m', why: 'digits that are not ASCII' },
    { text: '1e3s', why: 'an exponent' },
    { text: '432001s', why: 'longer than a job can last' },
    { text: '999999h', why: 'much longer than a job can last' },
  ])('refuses "$text" ($why) and names the input', ({ text }) => {
    expect(() => parseDuration('timeout', text)).toThrow(`input "timeout" is "${text.trim()}`);
  });
});

describe('formatDuration', () => {
  test.each([
    { ms: 0, text: '0 s' },
    { ms: -1, text: '0 s' },
    { ms: 1_499, text: '1 s' },
    { ms: 59_499, text: '59 s' },
    { ms: 59_500, text: '1m 00s' },
    { ms: 302_000, text: '5m 02s' },
    { ms: 3_599_499, text: '59m 59s' },
    { ms: 3_599_500, text: '1h 00m' },
    { ms: 432_000_000, text: '120h 00m' },
  ])('shows $ms ms as "$text"', ({ ms, text }) => {
    expect(formatDuration(ms)).toBe(text);
  });
});

describe('formatClock', () => {
  test.each([
    { ms: 0, text: '0:00' },
    { ms: -5_000, text: '0:00' },
    { ms: 9_999, text: '0:10' },
    { ms: 302_000, text: '5:02' },
    { ms: 7_261_000, text: '121:01' },
  ])('shows $ms ms as "$text"', ({ ms, text }) => {
    expect(formatClock(ms)).toBe(text);
  });
});
