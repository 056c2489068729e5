import { expect, test } from 'vitest';
import type { Answer } from '../../scripts/compare/look.ts';
import { classOf, movesBetween } from '../../scripts/compare/moves.ts';

const [A, B] = ['Deployment a/a', 'Deployment b/b'];

function answer(code: string, who = A, certainty = 'likely', isRoot = true): Answer {
  return { key: 'Widget db', code: `owner-${code}`, who, certainty, isRoot, sentence: who };
}

test.each([
  ['other name', [answer('failing')], [answer('failing', B)]],
  ['other name', [answer('missing', 'Widget db')], [answer('running')]],
  ['to missing', [answer('failing')], [answer('missing', 'Widget db')]],
  ['to missing', [answer('unknown', 'Widget db')], [answer('missing', 'Widget db')]],
  ['lost root cause', [answer('failing')], []],
  ['lost root cause', [answer('failing')], [answer('failing', A, 'likely', false)]],
  ['new root cause', [], [answer('failing')]],
  ['other state', [answer('failing')], [answer('not-acting')]],
  ['to unknown', [answer('failing')], [answer('unknown', 'Widget db')]],
  ['less sure', [answer('failing', A, 'proven')], [answer('failing')]],
  ['surer', [answer('failing')], [answer('failing', A, 'proven')]],
  ['surer', [answer('unknown', 'Widget db')], [answer('failing')]],
  [undefined, [answer('failing')], [answer('failing')]],
])('%s: %j, %j', (kind, was, is) => {
  expect(classOf(was, is)).toBe(kind);
});

test('a recording is listed once, by the worst that moved in it', () => {
  const side = (id: string, outcome: string, answers: Answer[], error?: string) =>
    [id, { id, outcome, answers, text: '[]', ...(error && { error }) }] as const;
  const old = [
    side('S1', 'stuck', [answer('failing')]),
    side('S2', 'would-hang', [answer('failing')]),
    side('S3', 'stuck', []),
    side('S4', 'stuck', []),
  ];
  const now = [
    side('S1', 'inconclusive', [answer('failing', B)]),
    side('S2', 'clear', []),
    side('S3', 'error', [], 'no such field'),
    side('S5', 'stuck', []),
  ];
  expect(movesBetween(new Map(old), new Map(now)).map(({ id, kind }) => [id, kind])).toEqual([
    ['S1', 'other name'],
    ['S2', 'false clear'],
    ['S3', 'not comparable'],
    ['S5', 'not comparable'],
    ['S4', 'not comparable'],
  ]);
});
