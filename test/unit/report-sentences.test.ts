import { describe, expect, test } from 'vitest';
import { FINDING_CODES, type Finding, type Subject } from '../../src/model/finding.ts';
import { rootsOf } from '../../src/report/causes.ts';
import {
  asSentence,
  asSentences,
  chainClauses,
  clockTime,
  linkWords,
  withAges,
} from '../../src/report/sentences.ts';
import { toMarkdown, toPlain, type Words } from '../../src/report/words.ts';
import { diagnosis, FINISHED_AT, finding } from '../stub/results.ts';

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
function clauses(...links: Link[]): Words[] {
  const findings = links.map((link) => finding(link));
  findings.forEach((link, at) => {
    const next = findings[at + 1];
    if (next !== undefined) link.waitsFor = [next.id];
  });
  const [only] = rootsOf(diagnosis(findings), { name: HOME });
  return chainClauses(only?.links ?? [], SCENE);
}

describe('the sentences of a chain', () => {
  test.each<{ what: string; next: Link; ends: string }>([
    {
      what: 'its controller',
      next: { code: 'owner-scaled-to-zero', subject: OPERATOR, message: 'has 0 replicas' },
      ends: 'Its controller, Deployment ops/operator, has 0 replicas.',
    },
    {
      what: 'a controller that is proven',
      next: {
        code: 'owner-failing',
        subject: OPERATOR,
        message: 'is refused what it must do',
        certainty: 'proven',
      },
      ends: 'Its controller, Deployment ops/operator, is refused what it must do.',
    },
    {
      what: 'a controller that is only likely, which nothing may make more of',
      next: {
        code: 'owner-scaled-to-zero',
        subject: OPERATOR,
        message: 'is most likely its controller, and is scaled to zero',
        certainty: 'likely',
      },
      ends: 'Deployment ops/operator is most likely its controller, and is scaled to zero.',
    },
    {
      what: 'an owner nobody can name, in the words for what was just named',
      next: {
        code: 'owner-unknown',
        subject: WIDGET,
        finalizer: 'a/b',
        message: 'has finalizer a/b, and nothing in the cluster shows who should remove it',
        continuation: 'nothing in the cluster shows who should remove it',
      },
      ends: 'Nothing in the cluster shows who should remove it.',
    },
    {
      what: 'the same without such words',
      next: { code: 'owner-unknown', subject: WIDGET, message: 'has no known owner' },
      ends: 'It has no known owner.',
    },
    {
      what: 'a type without a controller',
      next: {
        code: 'owner-missing',
        subject: subject('CustomResourceDefinition', 'widgets.x'),
        message: 'has no controller in this cluster',
      },
      ends: 'Its type, CustomResourceDefinition widgets.x, has no controller in this cluster.',
    },
    {
      what: 'a webhook that stops the update',
      next: {
        code: 'admission-denied',
        subject: subject('ValidatingWebhookConfiguration', 'guard'),
        message: 'denies UPDATE of widgets: not today',
      },
      ends: 'It is stopped by ValidatingWebhookConfiguration guard, which denies UPDATE of widgets: not today.',
    },
    {
      what: 'a lost node',
      next: { code: 'pod-node-unavailable', subject: subject('Node', 'n7'), message: 'is gone' },
      ends: 'It runs on Node n7, which is gone.',
    },
    {
      what: 'another object',
      next: { code: 'object-finalizer', subject: subject('Pod', 'p', HOME), message: 'is held' },
      ends: 'It waits for Pod p, which is held.',
    },
  ])('go on with $what', ({ next, ends }) => {
    expect(toPlain(asSentences(clauses(HELD, next)))).toBe(
      `Widget db is held by finalizer a/b. ${ends}`,
    );
  });

  test('keep the owner of a namespace finalizer apart from the namespace controller', () => {
    const told = clauses(
      { ...HELD, code: 'namespace-finalizer', subject: subject('Namespace', HOME) },
      { code: 'owner-not-ready', subject: OPERATOR, message: 'has no ready pod' },
    );
    expect(toPlain(asSentences(told))).toContain(
      "The finalizer's controller, Deployment ops/operator, has no ready pod.",
    );
  });

  test('tell the ends of a long one, as one sentence too', () => {
    const links = Array.from({ length: 7 }, (_, at) => ({
      ...HELD,
      subject: subject('Widget', `w${at}`, HOME),
      message: `is held by finalizer f/${at}`,
    }));
    expect(toPlain(asSentence(clauses(...links)))).toBe(
      'Widget w0 is held by finalizer f/0; it waits for Widget w1, which is held by finalizer f/1; it waits, over 4 more links, for what follows; it waits for Widget w6, which is held by finalizer f/6',
    );
  });

  test('say how many an entry stands for', () => {
    expect(toPlain(asSentences(clauses({ ...HELD, count: 20_000 })))).toBe(
      'Widget db (and 19,999 more like it) is held by finalizer a/b.',
    );
  });

  test('keep the words of somebody else in one piece', () => {
    const quote = 'cannot patch resource "widgets" in API group "x" | @me #1';
    const message = `is refused what it must do: ${quote}`;
    const told = clauses(HELD, { code: 'owner-failing', subject: OPERATOR, message, quote });
    expect(toMarkdown(asSentences(told))).toContain(
      'is refused what it must do: <code>cannot patch resource &#34;widgets&#34; in API group &#34;x&#34; &#124; &#64;me &#35;1</code>.',
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

test.each([
  { certainty: 'likely' as const, told: 'most likely Deployment ops/operator' },
  { certainty: 'proven' as const, told: 'Deployment ops/operator' },
])('a link to an owner that is $certainty is called so', ({ certainty, told }) => {
  const owner = finding({ code: 'owner-failing', subject: OPERATOR, message: 'is', certainty });
  expect(toPlain(linkWords(owner, HOME, undefined))).toBe(told);
});

describe('timestamps in sentences', () => {
  test.each([
    { text: 'since 2026-03-02T10:00:11Z and on', told: 'since 10:00:11 UTC (4m 51s ago) and on' },
    { text: '2026-03-02T10:00:11.123456Z', told: '10:00:11 UTC (4m 51s ago)' },
    { text: 'until 2026-03-02T10:10:00Z', told: 'until 10:10:00 UTC (in 4m 58s)' },
    { text: '2026-03-02T10:05:02Z', told: '10:05:02 UTC' },
    { text: '2026-03-01T21:00:00Z', told: '2026-03-01 21:00 UTC (13h 05m ago)' },
    { text: '2026-02-28T09:12:44Z', told: '2026-02-28 09:12 UTC (2 days ago)' },
    { text: '2026-99-99T99:99:99Z', told: '2026-99-99T99:99:99Z' },
    { text: 'x2026-03-02T10:00:11Z', told: 'x2026-03-02T10:00:11Z' },
  ])('$text', ({ text, told }) => {
    expect(withAges(text, FINISHED_AT)).toBe(told);
  });

  test('stay as they are when our own clock tells nothing', () => {
    expect(withAges('2026-03-02T10:00:11Z', 'never')).toBe('2026-03-02T10:00:11Z');
    expect(clockTime('never')).toBe('never');
  });
});
