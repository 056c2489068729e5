import { describe, expect, test } from 'vitest';
import { FINDING_CODES, type Finding, type Subject } from '../../src/model/finding.ts';
import { chainsOf } from '../../src/report/chains.ts';
import { chainSentence, chainSentences } from '../../src/report/sentences.ts';
import { toPlain } from '../../src/report/words.ts';
import { diagnosis, finding } from '../stub/results.ts';

const HOME = 'preview-pr-1';

function subject(kind: string, name: string, namespace?: string): Subject {
  return { apiVersion: 'x/v1', kind, name, ...(namespace === undefined ? {} : { namespace }) };
}

const WIDGET = subject('Widget', 'db', HOME);
const OPERATOR = subject('Deployment', 'operator', HOME);

/** Each waits for the next. */
function chain(...links: (Pick<Finding, 'code' | 'subject' | 'message'> & Partial<Finding>)[]): {
  prose: string;
  line: string;
} {
  const findings = links.map((link) => finding(link));
  findings.forEach((link, at) => {
    const next = findings[at + 1];
    if (next !== undefined) link.waitsFor = [next.id];
  });
  const [only] = chainsOf(diagnosis(findings));
  if (only === undefined) throw new Error('no chain');
  return {
    prose: toPlain(chainSentences(only, HOME)),
    line: toPlain(chainSentence(only, HOME)),
  };
}

const HELD = {
  code: 'object-finalizer',
  subject: WIDGET,
  message: 'is held by finalizer a/b',
  finalizer: 'a/b',
} as const;

describe('the sentence of a chain', () => {
  test('names the controller that is gone', () => {
    const told = chain(HELD, {
      code: 'owner-missing',
      subject: OPERATOR,
      message: 'was deleted with the namespace',
    });
    expect(told.prose).toBe(
      'Widget db is held by finalizer a/b. Its controller, Deployment operator, was deleted with the namespace.',
    );
    expect(told.line).toBe(
      'Widget db is held by finalizer a/b; its controller, Deployment operator, was deleted with the namespace',
    );
  });

  test.each([
    {
      what: 'a controller in another namespace',
      next: { code: 'owner-scaled-to-zero', subject: subject('Deployment', 'op', 'ops') },
      message: 'has 0 replicas',
      ends: 'Its controller, Deployment ops/op, has 0 replicas.',
    },
    {
      what: 'an owner nobody can name',
      next: { code: 'owner-unknown', subject: WIDGET },
      message: 'nothing in the cluster shows who should remove a/b',
      ends: 'Nothing in the cluster shows who should remove a/b.',
    },
    {
      what: 'an owner told as something about the object',
      next: { code: 'owner-unknown', subject: WIDGET },
      message: 'has no owner that could be recognised',
      ends: 'It has no owner that could be recognised.',
    },
    {
      what: 'an owner nobody can name, without naming the finalizer twice',
      next: { code: 'owner-unknown', subject: WIDGET, finalizer: 'a/b' },
      message: 'has finalizer a/b, and nothing in the cluster shows who should remove it',
      ends: 'Nothing in the cluster shows who should remove it.',
    },
    {
      what: 'an owner known by its product',
      next: { code: 'owner-unknown', subject: WIDGET, finalizer: 'a/b' },
      message: 'has finalizer a/b, which belongs to Rancher; where that runs could not be seen',
      ends: 'That finalizer belongs to Rancher; where that runs could not be seen.',
    },
    {
      what: 'a type without a controller',
      next: { code: 'owner-missing', subject: subject('CustomResourceDefinition', 'widgets.x') },
      message: 'has no controller in this cluster',
      ends: 'Its type, CustomResourceDefinition widgets.x, has no controller in this cluster.',
    },
    {
      what: 'a webhook that stops the update',
      next: {
        code: 'admission-webhook-failing',
        subject: subject('ValidatingWebhookConfiguration', 'guard'),
      },
      message: 'cannot be reached',
      ends: 'It is stopped by ValidatingWebhookConfiguration guard, which cannot be reached.',
    },
    {
      what: 'a lost node',
      next: { code: 'pod-node-unavailable', subject: subject('Node', 'n7') },
      message: 'does not exist any more',
      ends: 'It runs on Node n7, which does not exist any more.',
    },
    {
      what: 'a pod with a finalizer',
      next: { code: 'object-finalizer', subject: subject('Pod', 'web-0', HOME) },
      message: 'is held by finalizer p/q',
      ends: 'It waits for Pod web-0, which is held by finalizer p/q.',
    },
    {
      what: 'a message with a subject of its own',
      next: { code: 'apiservice-unavailable', subject: subject('APIService', 'v1.m') },
      message: 'its backend does not answer',
      ends: 'It waits for APIService v1.m: its backend does not answer.',
    },
  ] as const)('goes on with $what', ({ next, message, ends }) => {
    expect(chain(HELD, { ...next, message }).prose).toBe(
      `Widget db is held by finalizer a/b. ${ends}`,
    );
  });

  test.each([
    {
      code: 'apiservice-unavailable',
      subject: subject('APIService', 'v1beta1.metrics.k8s.io'),
      message: 'does not answer: its backend is Service m/a, which does not exist',
      says: 'APIService v1beta1.metrics.k8s.io does not answer: its backend is Service m/a, which does not exist.',
    },
    {
      code: 'unexplained',
      subject: subject('Namespace', HOME),
      message: 'is not gone, and nothing that could be read explains why',
      says: `Namespace ${HOME} is not gone, and nothing that could be read explains why.`,
    },
    {
      code: 'content-deleting',
      subject: subject('APIResource', 'configmaps'),
      message: 'are still going away: 5 objects 10 s ago, 4 now',
      says: 'Objects of type configmaps are still going away: 5 objects 10 s ago, 4 now.',
    },
    {
      code: 'deletion-forbidden',
      subject: subject('APIResource', 'leases.coordination.k8s.io'),
      message: 'may not be deleted by the namespace controller',
      says: 'Type leases.coordination.k8s.io may not be deleted by the namespace controller.',
    },
    {
      code: 'conversion-webhook-failing',
      subject: subject('CustomResourceDefinition', 'widgets.x'),
      message: 'cannot be read: its conversion webhook fails',
      says: 'CustomResourceDefinition widgets.x cannot be read: its conversion webhook fails.',
    },
  ] as const)('stands alone for $code', ({ says, ...alone }) => {
    expect(chain(alone).prose).toBe(says);
  });

  test('keeps the owner of a namespace finalizer apart from the namespace controller', () => {
    const told = chain(
      {
        code: 'namespace-finalizer',
        subject: subject('Namespace', HOME),
        message: 'is held by the entry a/b',
        finalizer: 'a/b',
      },
      {
        code: 'owner-not-ready',
        subject: subject('Deployment', 'rancher', 'cattle'),
        message: 'has no ready pod',
      },
    );
    expect(told.prose).toContain(
      "The finalizer's controller, Deployment cattle/rancher, has no ready pod.",
    );
  });

  test('tells three links in their order', () => {
    const told = chain(
      HELD,
      { code: 'owner-failing', subject: OPERATOR, message: 'is refused what it must do' },
      {
        code: 'admission-denied',
        subject: subject('ValidatingAdmissionPolicy', 'keep'),
        message: 'says no',
      },
    );
    expect(told.line).toBe(
      'Widget db is held by finalizer a/b; its controller, Deployment operator, is refused what it must do; it is stopped by ValidatingAdmissionPolicy keep, which says no',
    );
  });

  test('tells the ends of a long one', () => {
    const links = Array.from({ length: 7 }, (_, at) => ({
      code: 'object-finalizer' as const,
      subject: subject('Widget', `w${at}`, HOME),
      message: `is held by finalizer f/${at}`,
    }));
    expect(chain(...links).prose).toBe(
      'Widget w0 is held by finalizer f/0. It waits for Widget w1, which is held by finalizer f/1. It waits, over 4 more links, for what follows. It waits for Widget w6, which is held by finalizer f/6.',
    );
  });

  test('says how many an entry stands for', () => {
    expect(chain({ ...HELD, count: 20_000 }).prose).toBe(
      'Widget db (and 19,999 more like it) is held by finalizer a/b.',
    );
  });

  test.each(FINDING_CODES)('is a sentence for %s, alone and at the end', (code) => {
    const last = { code, subject: subject('Thing', 't'), message: 'is what it is' };
    expect(chain(last).prose).toMatch(/^(Thing t|Objects of type t) is what it is\.$/);
    expect(chain(HELD, last).prose).toMatch(
      /^Widget db is held by finalizer a\/b\. [A-Z].* is what it is\.$/,
    );
  });
});

describe('chains', () => {
  test('are the shortest to each root cause and name what else waits for it', () => {
    const node = finding({
      code: 'pod-node-unavailable',
      subject: subject('Node', 'n'),
      message: 'is gone',
    });
    const claim = finding({
      code: 'volume-in-use',
      subject: subject('PersistentVolumeClaim', 'data', HOME),
      message: 'is still used',
      waitsFor: [node.id],
    });
    const [only, ...more] = chainsOf(diagnosis([node, claim], { blockers: [claim.id, node.id] }));
    expect(more).toEqual([]);
    expect(only?.links.map(({ id }) => id)).toEqual([node.id]);
    expect(only?.others.map(({ id }) => id)).toEqual([claim.id]);
  });

  test('end although findings wait in a circle', () => {
    const a = finding({ code: 'object-finalizer', subject: subject('A', 'a'), message: 'waits' });
    const b = finding({
      code: 'object-finalizer',
      subject: subject('B', 'b'),
      message: 'waits',
      waitsFor: [a.id],
    });
    a.waitsFor = [b.id];
    const found = chainsOf(
      diagnosis([a, b], { blockers: [a.id], rootCauses: [b.id], deadlocks: [[a.id, b.id]] }),
    );
    expect(found).toMatchObject([{ isDeadlock: true, links: [{ id: a.id }, { id: b.id }] }]);
  });

  test('name a root cause that nothing leads to', () => {
    const lost = finding({
      code: 'unexplained',
      subject: subject('Namespace', HOME),
      message: 'is',
    });
    expect(chainsOf(diagnosis([lost], { blockers: [] }))).toMatchObject([
      { links: [{ id: lost.id }] },
    ]);
  });
});
