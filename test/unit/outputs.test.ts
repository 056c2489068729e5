import { describe, expect, test } from 'vitest';
import type { RunResult } from '../../src/model/result.ts';
import { OUTPUTS, outputsOf } from '../../src/outputs.ts';
import { viewOf } from '../../src/report/view.ts';
import {
  deadApiService,
  deadlock,
  forced,
  gone,
  leavesBehind,
  notSeen,
  runOf,
  settled,
  severalCauses,
} from '../stub/results.ts';

const NOWHERE = {};
const WHERE = {
  'report.json': '/r/report.json',
  'report.md': '/r/report.md',
};

/** What a workflow may ask for, of every situation. */
const SITUATIONS: Record<string, [run: RunResult | undefined, elapsedMs: number]> = {
  'a hang': [runOf([deadlock()]), 302_400],
  'a dead add-on': [runOf([deadApiService()]), 0],
  'several causes': [runOf([severalCauses()]), 0],
  'nothing that could be seen': [runOf([notSeen()]), 0],
  'a namespace that went': [runOf([gone('a')]), 38_000],
  'two that went': [runOf([gone('a'), gone('b')]), 0],
  'one that went, and what still points into it': [runOf([leavesBehind()]), 38_000],
  'one of two forced': [runOf([gone('a'), forced()], { outcome: 'forced' }), 0],
  'three, of which two did not pass': [
    runOf([gone('a'), deadlock(), settled('not-terminating', 'fail')]),
    0,
  ],
  'a run that could not work': [undefined, 900],
};

describe('outputs', () => {
  test('have the expected values in each situation', async () => {
    const told = Object.entries(SITUATIONS).map(([what, [run, elapsedMs]]) => {
      const outputs = outputsOf(run && viewOf(run), run ? WHERE : NOWHERE, elapsedMs);
      expect(Object.keys(outputs)).toEqual(Object.keys(OUTPUTS));
      return [`# ${what}`, ...Object.entries(outputs).map((pair) => pair.join(': ').trim()), ''];
    });
    await expect(told.flat().join('\n')).toMatchFileSnapshot('golden/outputs.txt');
  });
});
