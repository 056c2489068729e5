import { describe, expect, test } from 'vitest';
import { judge, missed, type Target } from '../../bench/judge.ts';
import { renderSections } from '../../bench/render.ts';
import type { BenchResults, ExplainSize, Measured } from '../../bench/results.ts';
import { median } from '../../bench/statistics.ts';

describe('judge', () => {
  test('meets a target exactly at its limit', () => {
    expect(found(results({ oneLinerMs: 50_000, gateMs: 1_000 }), 'the one-liner')).toMatchObject({
      measured: 50,
      met: true,
    });
    expect(found(results({ oneLinerMs: 49_999, gateMs: 1_000 }), 'the one-liner')).toMatchObject({
      met: false,
      from: '50.0 s / 1000 ms',
    });
  });

  test('neither meets nor misses a target that was not measured', () => {
    const { schemaVersion, startedAt, finishedAt, mode, environment } = results();
    const nothing = { schemaVersion, startedAt, finishedAt, mode, environment };

    expect(judge(nothing).every(({ met }) => met === undefined)).toBe(true);
    expect(missed(judge(nothing))).toEqual([]);
  });
});

describe('render', () => {
  test('prints a missed target plainly', () => {
    expect(renderSections(results({ oneLinerMs: 2_000, gateMs: 1_000 })).targets).toContain(
      '| at least 50 times | 2 times | 2000 ms / 1000 ms | **missed** |',
    );
  });
});

test.each([
  { values: [3, 1, 2], is: 2 },
  { values: [4, 1, 2, 3], is: 2.5 },
])('median of $values is $is', ({ values, is }) => {
  expect(median(values)).toBe(is);
});

function found(of: BenchResults, part: string): Target | undefined {
  return judge(of).find(({ what }) => what.includes(part));
}

interface Values {
  gateMs?: number;
  oneLinerMs?: number;
  requests?: number;
}

function results(values: Values = {}): BenchResults {
  return {
    schemaVersion: 1,
    startedAt: '2026-01-02T03:04:05.678Z',
    finishedAt: '2026-01-02T03:14:05.678Z',
    mode: 'part',
    environment: {
      cores: 2,
      cpu: 'some',
      memoryGiB: 8,
      platform: 'linux x64',
      node: '24.0.0',
      kubernetes: '1.36.3',
      kubectl: '1.33.1',
      loadAverage: 0.5,
      commit: 'abc',
    },
    explain: [size(0, values), size(300, values)],
  };
}

function size(crds: number, { gateMs = 1, oneLinerMs = 1, requests = 1 }: Values): ExplainSize {
  return {
    crds,
    objects: 1,
    listableTypes: 31,
    tools: {
      gate: measured(gateMs, requests),
      'bare-client': measured(1, 1),
      'one-get': measured(1, 1),
      'one-liner': measured(oneLinerMs, 1),
    },
  };
}

function measured(wallMs: number, requests: number): Measured {
  return { runs: 1, wallMs, fastestMs: wallMs, slowestMs: wallMs, requests, responseBytes: 0 };
}
