import type { ActionCase } from './case.ts';

function inputs(what: string, given: Record<string, string>, says: RegExp): ActionCase {
  return { what, inputs: () => given, says };
}

/** What is written into `with:`; the unit tests of the inputs have every way of being wrong. */
export const INPUTS: readonly ActionCase[] = [
  inputs('no namespace at all', { namespace: '' }, /"namespace" and "selector" are both empty/),
  inputs(
    'a namespace that runs commands',
    { namespace: 'x;::set-env name=A::b' },
    /which is no namespace name/,
  ),
  inputs('a whole file as namespace', { namespace: 'x'.repeat(100_000) }, /entry "x{79}…"/),
  inputs(
    'a timeout without unit',
    { timeout: '300' },
    /"timeout" is "300"; write a whole number and a unit/,
  ),
];
