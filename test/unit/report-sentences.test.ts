import { describe, expect, test } from 'vitest';
import { FINDING_CODES, type Finding, type Subject } from '../../src/model/finding.ts';
import { rootsOf } from '../../src/report/causes.ts';
import {
  chainClauses,
  clockTime,
  linkWords,
  messageWords,
  withAges,
} from '../../src/report/sentences.ts';
import { viewOf } from '../../src/report/view.ts';
import { asSentences, literal, toMarkdown, toPlain } from '../../src/report/words.ts';
import { expectPairs } from '../stub/pairs.ts';
import { diagnosis, FINISHED_AT, finding, namespaceResult, runOf } from '../stub/results.ts';

const HOME = 'preview-pr-1';
const SCENE = { home: HOME, now: FINISHED_AT };

function subject(kind: string, name: string, namespace?: string): Subject {
  return { apiVersion: 'x/v1', kind, name, ...(namespace === undefined ? {} : { namespace }) };
}

const WIDGET = subject('Widget', 'db', HOME);
const OPERATOR = subject('Deployment', 'operator', 'ops');
const HELD = {
  code: 'object-finalizer',
  subject: WIDGET,
  message: 'is held by finalizer a/b',
  finalizer: 'a/b',
} as const;

type Link = Pick<Finding, 'code' | 'subject' | 'message'> & Partial<Finding>;

/** Each waits for the next. */
function clauses(...links: Link[]): string[] {
  const findings = links.map((link) => finding(link));
  findings.forEach((link, at) => {
    const next = findings[at + 1];
    if (next !== undefined) link.waitsFor = [next.id];
  });
  const [only] = rootsOf(namespaceResult({ name: HOME, diagnosis: diagnosis(findings) }));
  return only === undefined ? [] : chainClauses(only, SCENE);
}

test('a clause with its own full stop gets no second one', () => {
  const said = [`it says ${literal('not allowed.')}`, 'so it stays'];
  expect(toPlain(asSentences(said))).toBe('It says not allowed. So it stays.');
});

describe('the sentences of a chain', () => {
  test('continue with the object that is waited for', () =>
    expectPairs('sentences.txt', (line) => {
      const { subject: next, ...rest } = JSON.parse(line);
      const link: Link = { ...rest, subject: { apiVersion: 'x/v1', ...next } };
      return toPlain(asSentences(clauses(HELD, link)));
    }));

  const widget = (at: number): Link => ({
    ...{ ...HELD, subject: subject('Widget', `w${at}`, HOME) },
    message: `is held by finalizer f/${at}`,
  });

  test.each<[what: string, links: Link[], told: string]>([
    [
      'keep the owner of a namespace finalizer apart from the namespace controller',
      [
        { ...HELD, code: 'namespace-finalizer', subject: subject('Namespace', HOME) },
        { code: 'owner-not-ready', subject: OPERATOR, message: 'has no ready pod' },
      ],
      "The finalizer's controller, Deployment ops/operator, has no ready pod.",
    ],
    [
      'contain both ends of a long chain',
      Array.from({ length: 7 }, (_, at) => widget(at)),
      'Widget w0 is held by finalizer f/0. It waits, through 5 more objects, for Widget w6, held by finalizer f/6.',
    ],
    [
      'contain the number of objects that a finding represents',
      [{ ...HELD, count: 20_000 }],
      'Widget db (and 19,999 others like it) is held by finalizer a/b.',
    ],
  ])('%s', (_, links, told) => {
    expect(toPlain(asSentences(clauses(...links)))).toContain(told);
  });

  test('keep a quotation in one piece', () => {
    const quote = 'cannot patch resource "widgets" in API group "x" | @me #1';
    const message = `is refused what it must do: ${quote}`;
    const told = clauses(HELD, { code: 'owner-failing', subject: OPERATOR, message, quote });
    expect(toMarkdown(asSentences(told))).toContain(
      'is refused what it must do: <code>cannot patch resource &#34;widgets&#34; in API group &#34;x&#34; &#124; <wbr>&#64;me &#35;1</code>.',
    );
    expect(toPlain(asSentences(told))).toContain(`${quote}.`);
  });

  test.each(FINDING_CODES)('are sentences for %s, alone and at the end', (code) => {
    const last = { code, subject: subject('Thing', 't'), message: 'is what it is' };
    expect(toPlain(asSentences(clauses(last)))).toMatch(
      /^(Thing t|Objects of type t) is what it is\.$/,
    );
    expect(toPlain(asSentences(clauses(HELD, last)))).toMatch(
      /^Widget db is held by finalizer a\/b\. [A-Z].* is what it is\.$/,
    );
  });
});

const ITSELF = subject('Namespace', HOME);
test.each<[string, Partial<Link> & Pick<Link, 'code'>]>([
  ['Deployment ops/operator (most likely)', { code: 'admission-denied', certainty: 'likely' }],
  // The message about an owner has this word.
  ['Deployment ops/operator', { code: 'owner-failing', certainty: 'likely' }],
  // It is held by the finalizer, which is not held itself.
  [`Namespace ${HOME}`, { ...HELD, code: 'namespace-finalizer', subject: ITSELF }],
])('a link is %s: %j', (told, link) => {
  const linked = finding({ subject: OPERATOR, message: 'is', ...link });
  expect(toPlain(linkWords(linked, HOME, undefined))).toBe(told);
});

test.each([
  [HELD, /^may hang: it is not known whether a controller removes finalizer a\/b$/],
  [{ ...HELD, code: 'owner-failing', subject: OPERATOR }, /whether Deployment \S+ removes /],
  [
    { code: 'pod-node-unavailable', subject: subject('Node', 'n1'), message: 'is not ready' },
    /^may hang: Node n1 is not ready$/,
  ],
] as const)('the state of an inconclusive forecast says what is open: %j', (open, words) => {
  const root = finding({ ...open, certainty: 'unknown' });
  const one = namespaceResult({ outcome: 'inconclusive', diagnosis: diagnosis([root]) });
  const [view] = viewOf(runOf([one], { kind: 'forecast' })).namespaces;
  expect(toPlain(view?.state ?? '')).toMatch(words);
});

test.each([
  ['a/b', 'is held by the finalizer'],
  ['x/y', 'is held by finalizer a/b'],
])('a finalizer after an object with finalizer %s', (finalizer, words) => {
  const told = messageWords(finding(HELD), SCENE, finding({ ...HELD, finalizer }));
  expect(toPlain(told)).toBe(words);
});

test('an inconclusive forecast with an open question says what it is, and what to do', () => {
  const notInspected = [{ what: 'whether admission lets pods be deleted', reason: 'policy x' }];
  const found = { ...diagnosis([]), notInspected };
  const one = namespaceResult({ outcome: 'inconclusive', diagnosis: found });
  const [cause] = viewOf(runOf([one], { kind: 'forecast' })).causes;
  expect(toPlain(asSentences(cause?.clauses ?? []))).toContain('pods be deleted: policy x');
  expect(JSON.stringify(cause)).toContain('only the deletion itself answers it');
});

test('two objects that wait for each other are told as such', () => {
  const held = (id: string, waitsFor: string[]): Finding =>
    finding({ ...HELD, subject: subject('Widget', id, HOME), id, waitsFor });
  const graph = { blockers: ['a', 'b'], rootCauses: ['a'], deadlocks: [['a', 'b']] };
  const found = diagnosis([held('a', ['b']), held('b', ['a'])], graph);
  const [only] = viewOf(runOf([namespaceResult({ name: HOME, diagnosis: found })])).causes;
  expect(toPlain(asSentences(only?.clauses ?? []))).toBe(
    'Widget a is held by finalizer a/b. It and Widget b wait for each other.',
  );
  expect(only?.also).toBe('');
});

test.each([
  ['Machine', 'Also waiting for this: Machine db.'],
  ['Widget', 'Also waiting for this: finalizer x/y.'],
])('what also waits for Widget db, a %s of its name: %s', (kind, also) => {
  const root = finding({ ...HELD, id: 'a' });
  const other = finding({ ...HELD, id: 'b', finalizer: 'x/y', subject: subject(kind, 'db', HOME) });
  other.waitsFor = ['a'];
  const found = diagnosis([root, other], { blockers: ['a', 'b'], rootCauses: ['a'] });
  const [only] = viewOf(runOf([namespaceResult({ name: HOME, diagnosis: found })])).causes;
  expect(toPlain(only?.also ?? '')).toBe(also);
});

describe('timestamps in sentences', () => {
  test('have the time of day and their age', () =>
    expectPairs('ages.txt', (text) => withAges(text, FINISHED_AT)));

  test('stay unchanged if the clock of the gate is unknown', () => {
    expect(withAges('2026-03-02T10:00:11Z', 'never')).toBe('2026-03-02T10:00:11Z');
    expect(clockTime('never')).toBe('never');
  });
});
