import { describe, expect, test } from 'vitest';
import { diagnose } from '../../src/diagnose/diagnose.ts';
import { FINDING_CODES } from '../../src/model/finding.ts';
import { CORE, ofThisPart } from '../cluster/core.ts';
import { SCENARIOS } from '../cluster/scenarios/index.ts';
import { readRecordedLook } from './recorded-looks.ts';

describe('the core on real control planes has a scenario that shows', () => {
  test.each(FINDING_CODES)('%s', (code) => {
    const { before, now } = readRecordedLook(CORE[code]);
    expect(diagnose(now, before).findings.map((finding) => finding.code)).toContain(code);
  });
});

test('no two scenarios have one id', () => {
  const ids = SCENARIOS.map(({ id }) => id);
  expect(ids.filter((id, index) => ids.indexOf(id) !== index)).toEqual([]);
});

test('the parts of the catalogue are all of it, and no scenario is in two', () => {
  const parts = ['1/4', '2/4', '3/4', '4/4'].map((part) => ofThisPart(SCENARIOS, part));
  expect(parts.flat()).toHaveLength(SCENARIOS.length);
  expect(new Set(parts.flat()).size).toBe(SCENARIOS.length);
  expect(() => ofThisPart(SCENARIOS, '5/4')).toThrow('5/4');
});
