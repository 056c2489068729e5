import { describe, expect, test } from 'vitest';
import { FINDING_CODES } from '../../src/model/finding.ts';
import { OUTCOMES } from '../../src/model/outcome.ts';
import { buildReport } from '../../src/report/report-json.ts';
import { readSchema, schemaErrors } from '../stub/report-schema.ts';
import {
  deadlock,
  diagnosis,
  finding,
  forced,
  foretold,
  gone,
  leavesBehind,
  namespaceResult,
  notSeen,
  runOf,
  settled,
} from '../stub/results.ts';

describe('report.json', () => {
  test('is valid for each end of a run', () => {
    const ends = [
      ...[notSeen(), forced(), leavesBehind(), gone(), settled('not-found', 'pass')],
      ...[{ ...settled('not-found', 'fail'), uid: '' }, settled('not-terminating', 'fail')],
      ...[settled('recreated', 'warn'), settled('cancelled', 'fail')],
    ];
    for (const end of ends)
      expect(schemaErrors(buildReport(runOf([end]))), end.outcome).toEqual([]);
  });

  test('of a forecast over several namespaces is valid, with their shared causes', () => {
    const namespaces = [foretold('S4', 'a'), foretold('S4', 'b')];
    const report = buildReport(runOf(namespaces, { kind: 'forecast' }));
    expect(schemaErrors(report)).toEqual([]);
    expect(report.sharedCauses).toMatchObject([
      { finding: { code: 'owner-missing' }, namespaces: ['a', 'b'] },
    ]);
  });

  test('has no properties that are only for renderers', () => {
    const found = finding({
      code: 'owner-failing',
      subject: { apiVersion: 'apps/v1', kind: 'Deployment', name: 'op' },
      message: 'is refused: no',
      quote: 'no',
      continuation: 'nobody acts',
      certainty: 'likely',
      remedies: [{ role: 'or', text: 'do', command: 'it' }],
    });
    const namespace = namespaceResult({
      diagnosis: diagnosis([found]),
      leftBehind: leavesBehind().leftBehind,
    });
    const [told] = buildReport(runOf([namespace])).namespaces;
    const { quote: _q, continuation: _c, ...rest } = found;
    expect(told?.findings).toEqual([rest]);
    expect(told?.leftBehind[0]).not.toHaveProperty('breaksOthers');
  });

  test('has the texts of the cluster unchanged', () => {
    const namespace = deadlock();
    const nasty = 'a|b <img src=x onerror=y> ##[error]x \u0000 \u202e ::error::';
    namespace.diagnosis?.findings[0]?.evidence.push(nasty);
    const report = JSON.parse(JSON.stringify(buildReport(runOf([namespace]))));
    expect(report.namespaces[0].findings[0].evidence).toContain(nasty);
  });

  test.each([
    { what: 'an unknown outcome', change: { outcome: 'vanished' } },
    { what: 'another version', change: { schemaVersion: 2 } },
    { what: 'no namespaces', change: { namespaces: undefined } },
    { what: 'a time that is none', change: { generatedAt: 'yesterday' } },
  ])('is invalid with $what', ({ change }) => {
    expect(schemaErrors({ ...buildReport(runOf([gone()])), ...change })).not.toEqual([]);
  });
});

test('the schema has exactly the finding codes and outcomes of the program', () => {
  const { finding: of, outcome } = readSchema().$defs;
  const { properties } = of as unknown as { properties: { code: { enum: string[] } } };
  expect(properties.code.enum.sort()).toEqual([...FINDING_CODES].sort());
  expect([...(outcome?.enum ?? [])].sort()).toEqual([...OUTCOMES].sort());
});
