import type { ActionCase } from './case.ts';

function inputs(what: string, given: Record<string, string>, says: RegExp): ActionCase {
  return { what, inputs: () => given, says };
}

/** What is written into `with:`. */
export const INPUTS: readonly ActionCase[] = [
  inputs('no namespace at all', { namespace: '' }, /"namespace" and "selector" are both empty/),
  inputs('only separators', { namespace: ' ,\n,, ' }, /"namespace" and "selector" are both empty/),
  inputs(
    'a namespace in capitals',
    { namespace: 'Preview' },
    /entry "Preview", which is no namespace name/,
  ),
  inputs('a pattern as namespace', { namespace: 'preview-*' }, /entry "preview-\*"/),
  inputs('a path as namespace', { namespace: '../../etc' }, /entry "\.\.\/\.\.\/etc"/),
  inputs(
    'an unexpanded expression',
    { namespace: `$\{{ github.head_ref }}` },
    /which is no namespace name/,
  ),
  inputs('a name of 64 characters', { namespace: 'a'.repeat(64) }, /at most 63 characters/),
  inputs('a name with a dot', { namespace: 'a.b' }, /entry "a\.b"/),
  inputs('an emoji', { namespace: '🚀' }, /entry "🚀"/),
  inputs(
    'a namespace that runs commands',
    { namespace: 'x;::set-env name=A::b' },
    /which is no namespace name/,
  ),
  inputs('a whole file as namespace', { namespace: 'x'.repeat(100_000) }, /entry "x{80}…"/),
  inputs(
    'a timeout without unit',
    { timeout: '300' },
    /"timeout" is "300"; write a whole number and a unit/,
  ),
  inputs('a negative timeout', { timeout: '-5m' }, /"timeout" is "-5m"/),
  inputs('a timeout of a year', { timeout: '8760h' }, /"timeout" is "8760h"/),
  inputs('a timeout in words', { timeout: 'five minutes' }, /"timeout" is "five minutes"/),
  inputs('a fractional timeout', { timeout: '1.5h' }, /"timeout" is "1\.5h"/),
  inputs('a boolean in words', { delete: 'yes' }, /"delete" is "yes"; use one of: true, false/),
  inputs('a boolean as number', { 'fail-fast': '1' }, /"fail-fast" is "1"; use one of/),
  inputs(
    'an unknown fail-on',
    { 'fail-on': 'always' },
    /"fail-on" is "always"; use one of: not-deleted, stuck, never/,
  ),
  inputs(
    'an unknown if-not-found',
    { 'if-not-found': 'fail' },
    /"if-not-found" is "fail"; use one of: ok, error/,
  ),
  inputs(
    'an unknown comment',
    { comment: 'true' },
    /"comment" is "true"; use one of: off, on-failure, always/,
  ),
  inputs('a pull request in words', { 'pr-number': 'PR-42' }, /"pr-number" is "PR-42"/),
  inputs('a pull request of zero', { 'pr-number': '0' }, /"pr-number" is "0"/),
  inputs(
    'a selector of two lines',
    { namespace: '', selector: 'a=b\nc=d' },
    /"selector" is "a=b c=d"/,
  ),
  inputs(
    'a selector with a query',
    { namespace: '', selector: 'a=b&limit=1' },
    /"selector" is "a=b&limit=1"/,
  ),
  inputs(
    'an unknown force-finalize',
    { 'force-finalize': 'true' },
    /"force-finalize" is "true"; use one of: off, plan, objects, namespace/,
  ),
  inputs(
    'forcing without namespaces',
    { 'force-finalize': 'objects' },
    /"force-namespaces" is empty/,
  ),
  inputs(
    'forcing without finalizers',
    { 'force-finalize': 'objects', 'force-namespaces': 'preview-*' },
    /"force-finalizers" is empty/,
  ),
  inputs(
    'a label without value',
    { 'force-label': 'ephemeral' },
    /"force-label" is "ephemeral"; use one label as key=value/,
  ),
  inputs(
    'unknown force-orphans',
    { 'force-orphans': 'maybe' },
    /"force-orphans" is "maybe"; use one of: refuse, accept/,
  ),
  inputs('unknown force-pods', { 'force-pods': 'all' }, /"force-pods" is "all"/),
];
