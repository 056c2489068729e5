import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { type EarlierForecast, hindsightOf } from '../../src/forecast/hindsight.ts';
import { withHindsight } from '../../src/in-cluster.ts';
import type { Diagnosis, Finding } from '../../src/model/finding.ts';
import type { NamespaceResult, RunResult } from '../../src/model/result.ts';
import type { Report } from '../../src/report/report-json.ts';
import { summarizeReports } from '../../src/report/statistics.ts';

const WORKLOAD = { apiVersion: 'apps/v1', kind: 'Deployment', namespace: 'p', name: 'operator' };

function owner(code: Finding['code'], finalizer = 'example.com/a'): Finding {
  return {
    ...{ id: `${code}:${finalizer}`, code, subject: WORKLOAD, finalizer, message: 'm' },
    ...{ evidence: [], scope: 'cluster', waitsFor: [], remedies: [] },
  };
}

function ended(outcome: NamespaceResult['outcome'], found: Finding[] = [], deletions = 0) {
  const rootCauses = found.map(({ id }) => id);
  const diagnosis = { findings: found, rootCauses } as unknown as Diagnosis;
  return {
    ...{ uid: 'u1', outcome, diagnosis },
    deletions: Array.from({ length: deletions }, () => ({})),
  } as unknown as NamespaceResult;
}

function said(outcome: string, found: Finding[] = [], more: Partial<EarlierForecast> = {}) {
  const rootCauses = found.map(({ id }) => id);
  return { at: 't', uid: 'u1', outcome, findings: found, rootCauses, ...more };
}

const BASIS = {
  ...{ objectsWithFinalizers: 1, finalizers: ['example.com/a'], notInspected: 0, next: [] },
  owners: [{ owner: 'Deployment p/operator', objects: 1, evidence: '1 of 1 ready' }],
  dryRuns: { deletions: 0, removals: 0 },
};

test.each<[string, NamespaceResult, EarlierForecast, string | undefined, RegExp]>([
  ['clear, deleted', ended('deleted'), said('clear'), 'foreseen', /said clear/],
  [
    'the same cause',
    ended('stuck', [owner('owner-failing')]),
    said('would-hang', [owner('owner-failing')]),
    'foreseen',
    /named owner-failing/,
  ],
  [
    'the same finalizer, in another state',
    ended('stuck', [owner('owner-running')]),
    said('inconclusive', [owner('owner-failing')]),
    'open',
    /named owner-failing/,
  ],
  [
    'another cause',
    ended('stuck', [owner('owner-missing', 'example.com/b')]),
    said('would-hang', [owner('owner-failing')]),
    'not-foreseen',
    /what holds it now is owner-missing/,
  ],
  [
    'a false alarm',
    ended('deleted'),
    said('would-hang', [owner('owner-missing')]),
    'not-foreseen',
    /and the namespace was deleted/,
  ],
  [
    'what the order avoided',
    ended('deleted', [], 1),
    said('would-hang', [owner('owner-missing')]),
    'not-comparable',
    /deleted first/,
  ],
  [
    'a finalizer that is new',
    ended('stuck', [owner('owner-missing', 'example.com/b')]),
    said('clear', [], { basis: BASIS }),
    'not-foreseen',
    /nothing in the namespace had finalizer example.com\/b/,
  ],
  [
    'a controller that was expected to act',
    ended('stuck', [owner('owner-failing')]),
    said('clear', [], { basis: BASIS }),
    'not-foreseen',
    /expected Deployment p\/operator to act: 1 of 1 ready/,
  ],
  ['another UID', ended('stuck'), said('clear', [], { uid: 'u2' }), 'not-comparable', /UID u2/],
  ['nothing happened', ended('not-found'), said('clear'), undefined, /^$/],
])('%s', (_, result, forecast, verdict, because) => {
  const hindsight = hindsightOf(result, forecast);
  expect(hindsight?.verdict).toBe(verdict);
  expect(hindsight?.because ?? '').toMatch(because);
});

test('the statistics count foreseen hangs, and no forecast as a teardown', () => {
  const namespace = (outcome: string, hindsight?: object, more = {}) =>
    ({
      name: 'n',
      uid: '',
      outcome,
      elapsedSeconds: 1,
      findings: [],
      rootCauses: [],
      blockers: [],
      hindsight,
      ...more,
    }) as unknown as Report['namespaces'][number];
  const compared = (outcome: string, verdict: string, forecast: string) =>
    namespace(outcome, { at: 't', outcome: forecast, verdict, because: 'x' });
  const reports = [
    {
      generatedAt: 't',
      namespaces: [
        compared('deleted', 'foreseen', 'clear'),
        compared('deleted', 'not-foreseen', 'would-hang'),
        compared('stuck', 'not-foreseen', 'clear'),
        compared('stuck', 'open', 'inconclusive'),
        compared('stuck', 'not-comparable', 'clear'),
        namespace('inconclusive', undefined, { basis: BASIS }),
        namespace('deleted'),
      ],
    },
  ] as unknown as Report[];
  const { teardowns, forecasts } = summarizeReports(reports);
  expect({ teardowns, forecasts }).toEqual({
    teardowns: 6,
    forecasts: {
      ...{ compared: 4, foreseen: 1, open: 1, notForeseen: 2 },
      ...{ missedHangs: 1, falseAlarms: 1 },
    },
  });
});

test.each([
  ['no JSON', 'token: s3cr3t', /cannot be used: it is no report.json of this gate, version 1$/],
  [
    'another schema',
    '{"schemaVersion":2,"namespaces":[]}',
    /no report.json of this gate, version 1/,
  ],
  [
    'damaged',
    '{"schemaVersion":1,"namespaces":[{"name":"n","rootCauses":[],"findings":null}]}',
    /no report.json of this gate, version 1/,
  ],
  ['no file', undefined, /cannot be used: no such file/],
  ['a device', '/dev/null', /cannot be used: it is a device or a pipe/],
  [
    'a forecast of this namespace',
    JSON.stringify({
      ...{ schemaVersion: 1, generatedAt: 't' },
      namespaces: [{ name: 'n', ...said('clear') }],
    }),
    /^n: forecast of t \(clear\): foreseen/,
  ],
])('the outcome stays the same if the forecast report is %s', (_, content, told) => {
  const isDevice = content === '/dev/null';
  const path = isDevice ? content : join(mkdtempSync(join(tmpdir(), 'hindsight-')), 'report.json');
  if (content !== undefined && !isDevice) writeFileSync(path, content);
  const lines: string[] = [];
  const log = {
    line: (text: string) => lines.push(text),
    warning: (text: string) => lines.push(text),
  };
  const namespaces = [{ ...ended('deleted'), name: 'n', timeline: [] }];
  const result = { kind: 'teardown', finishedAt: 't', outcome: 'deleted', namespaces };
  const compared = withHindsight(
    result as unknown as RunResult,
    path,
    log as unknown as Parameters<typeof withHindsight>[2],
  );
  expect(compared.outcome).toBe('deleted');
  expect(lines.join()).toMatch(told);
});
