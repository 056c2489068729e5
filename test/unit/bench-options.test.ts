import { expect, test } from 'vitest';
import { parseOptions } from '../../bench/options.ts';

test('runs everything by default', () => {
  expect(parseOptions([])).toMatchObject({ mode: 'full', latencyRounds: 20 });
});

test('--quick leaves out what takes long', () => {
  const options = parseOptions(['--quick']);

  expect(options).toMatchObject({ mode: 'quick', latencyRounds: 5 });
  expect(options !== 'help' && options.parts.has('objects')).toBe(false);
});

test('--only selects parts, and refuses unknown names', () => {
  const options = parseOptions(['--only', 'startup,limits']);

  expect(options !== 'help' && [...options.parts]).toEqual(['startup', 'limits']);
  expect(() => parseOptions(['--only', 'startup,speed'])).toThrow(
    '"speed"; the parts are startup,',
  );
});
