import { describe, expect, test } from 'vitest';
import type { Diagnosis, Finding } from '../../src/model/finding.ts';
import type { NamespaceResult, RunResult } from '../../src/model/result.ts';
import { causesOf, rootsOf } from '../../src/report/causes.ts';
import { buildReport } from '../../src/report/report-json.ts';
import { attributionOf } from '../../src/report/sentences.ts';
import { viewOf } from '../../src/report/view.ts';
import { toPlain } from '../../src/report/words.ts';
import { expectPairs } from '../stub/pairs.ts';
import {
  deadApiService,
  deadlock,
  diagnosis,
  finding,
  gone,
  namespaceResult,
  recorded,
  runOf,
} from '../stub/results.ts';

/** An object held by a finalizer whose owner is in another namespace or in the same. */
function held(name: string, owner: Partial<Finding> = {}): NamespaceResult {
  const root = finding({
    code: 'owner-not-ready',
    subject: { apiVersion: 'apps/v1', kind: 'Deployment', namespace: 'flux', name: 'helm' },
    finalizer: 'finalizers.fluxcd.io',
    message: 'is not ready',
    ...owner,
  });
  const object = finding({
    code: 'object-finalizer',
    subject: { apiVersion: 'v1', kind: 'ConfigMap', namespace: name, name: `of-${name}` },
    finalizer: 'finalizers.fluxcd.io',
    message: 'is held',
    waitsFor: [root.id],
  });
  return namespaceResult({ name, diagnosis: diagnosis([object, root]) });
}

describe('causes that several namespaces share', () => {
  const by = (namespace: string, name: string): Partial<Finding> => ({
    subject: { apiVersion: 'apps/v1', kind: 'Deployment', namespace, name },
  });
  const dead = (...names: string[]) => names.map((name) => deadApiService(name));

  test.each<[what: string, namespaces: NamespaceResult[], are: [string, string[]][]]>([
    [
      'a dead add-on of the cluster',
      [...dead('a', 'b'), deadlock('c')],
      [['apiservice-unavailable', ['a', 'b']]],
    ],
    [
      'an operator in each of them that went with it',
      [deadlock('a'), deadlock('b')],
      [['owner-missing', ['a', 'b']]],
    ],
    [
      'finalizers that nobody knows, on objects of other names',
      [recorded('S1', 'a'), recorded('S1', 'b')],
      [['owner-unknown', ['a', 'b']]],
    ],
    [
      'the most namespaces first',
      [held('a'), held('b'), ...dead('c', 'd', 'e')],
      [
        ['apiservice-unavailable', ['c', 'd', 'e']],
        ['owner-not-ready', ['a', 'b']],
      ],
    ],
    ['not two controllers with one finalizer', [held('a'), held('b', by('flux', 'kustom'))], []],
    ['not two of one name in other namespaces', [held('a'), held('b', by('ops', 'helm'))], []],
    [
      'not what held a namespace that is gone',
      [deadlock('a'), { ...deadlock('b'), outcome: 'forced' }, gone('c')],
      [],
    ],
    ['none for one namespace', [recorded('S32')], []],
  ])('%s', (_, namespaces, are) => {
    const { sharedCauses } = buildReport(runOf(namespaces));
    expect(sharedCauses.map(({ finding, namespaces: names }) => [finding.code, names])).toEqual(
      are,
    );
  });

  test('within a kind, the cause of most objects comes first', () => {
    const object = (name: string, count: number): Finding[] => {
      const owner = finding({
        code: 'owner-unknown',
        subject: { apiVersion: 'v1', kind: 'ConfigMap', namespace: 'n', name },
        finalizer: `f/${name}`,
        message: 'has no known owner',
      });
      const waits = { ...owner, id: name, code: 'object-finalizer' as const, count };
      return [{ ...waits, waitsFor: [owner.id] }, owner];
    };
    const found = diagnosis([...object('few', 2), ...object('many', 90), ...object('some', 7)]);
    const causes = causesOf([namespaceResult({ name: 'n', diagnosis: found })]);
    expect(causes.map(([{ blockers }]) => blockers[0]?.count)).toEqual([90, 7, 2]);
  });
});

describe('roots', () => {
  const rootsIn = (found: Diagnosis) => rootsOf(namespaceResult({ name: 'n', diagnosis: found }));
  const at = (name: string, given: Partial<Finding> = {}): Finding =>
    finding({
      code: 'object-finalizer',
      subject: { apiVersion: 'v1', kind: 'K', name },
      message: 'waits',
      ...given,
    });

  test('have the shortest chain and all blockers', () => {
    const node = at('node');
    const claim = at('claim', { waitsFor: [node.id] });
    const [only, ...more] = rootsIn(diagnosis([node, claim], { blockers: [claim.id, node.id] }));
    expect(more).toEqual([]);
    expect(only?.links.map(({ id }) => id)).toEqual([node.id]);
    expect(only?.blockers.map(({ id }) => id)).toEqual([node.id, claim.id]);
  });

  test('are listed in spite of circles, and without a chain to them', () => {
    const a = at('a');
    const b = at('b', { waitsFor: [a.id] });
    a.waitsFor = [b.id];
    const circle = diagnosis([a, b], { blockers: [a.id], rootCauses: [b.id] });
    expect(rootsIn(circle)).toMatchObject([{ links: [{ id: a.id }, { id: b.id }] }]);
    expect(rootsIn(diagnosis([a], { blockers: [], rootCauses: [a.id] }))).toHaveLength(1);
  });
});

test('where a cause lies is reported', () =>
  expectPairs('attributions.txt', (line) => {
    const { causes, deadlock: isDeadlock = false } = JSON.parse(line);
    const findings: Finding[] = causes.map((given: Pick<Finding, 'code' | 'scope'>) =>
      finding({
        ...{ message: 'is', subject: { apiVersion: 'v1', kind: 'K', name: given.code } },
        ...given,
      }),
    );
    const deadlocks = isDeadlock ? [findings.map(({ id }) => id)] : [];
    const found = diagnosis(findings, { deadlocks });
    const deletionTimestamp = '2026-03-02T10:00:00.000Z';
    const [first] = causesOf([namespaceResult({ diagnosis: found, deletionTimestamp })]);
    return first && toPlain(attributionOf(first));
  }));

describe('remedies', () => {
  const remedy = (role: 'now' | 'or' | 'look' | 'next', text: string): Finding['remedies'][0] => ({
    text,
    role,
    command: `kubectl ${text}`,
  });
  const titles = (
    remedies: Finding['remedies'],
    kind: RunResult['kind'] = 'teardown',
  ): string[] => {
    const namespace = held('n', { remedies });
    const outcome = kind === 'forecast' ? 'would-hang' : 'stuck';
    const [only] = viewOf(runOf([{ ...namespace, outcome }], { kind })).causes;
    return (only?.remedies ?? []).map(
      ({ title, actions }) => `${title}: ${actions.map(({ text }) => toPlain(text)).join(', ')}`,
    );
  };
  const ALL = [remedy('look', 'c'), remedy('or', 'b'), remedy('next', 'd'), remedy('now', 'a')];

  test.each([
    [
      'what has to be done comes first',
      titles(ALL),
      ['Fix: a', 'Alternative: b', 'Prevent it next time: d', 'Look closer: c'],
    ],
    [
      'where nobody knows what, looking comes first',
      titles([remedy('or', 'b'), remedy('look', 'c')]),
      ['What to do: c', 'Alternative: b'],
    ],
    ['the only way out is what to do', titles([remedy('or', 'b')]), ['Fix: b']],
    [
      'a forecast ends with what prevents it: the controller has to be there first',
      titles(ALL, 'forecast'),
      ['Fix: a, d', 'Alternative: b', 'Look closer: c'],
    ],
  ])('%s', (_, told, are) => {
    expect(told).toEqual(are);
  });

  test('of equal causes are listed once, with the commands for the first namespace', () => {
    const [only] = viewOf(runOf([deadlock('a'), deadlock('b'), deadlock('c')])).causes;
    const next = only?.remedies.find(({ title }) => title === 'Prevent it next time')?.actions;
    expect(next?.map(({ commands }) => [...commands])).toEqual([
      ['kubectl delete widgets.example.com --all -n a --wait'],
    ]);
  });

  test('of one cause reach every object that it holds', () => {
    const subject = { apiVersion: 'apps/v1', kind: 'Deployment', namespace: 'n', name: 'operator' };
    const held = ['Widget', 'Gadget'].flatMap((kind) => {
      const finalizer = `${kind.toLowerCase()}s.example.com/cleanup`;
      const command = `kubectl patch ${kind.toLowerCase()}s.example.com db -n n`;
      const root = finding({
        ...{ code: 'owner-scaled-to-zero', subject, finalizer, message: 'is scaled to zero' },
        remedies: [
          { role: 'now', text: `Remove this one finalizer from ${kind} db`, command },
          { role: 'now', text: `Then read about ${kind} objects` },
        ],
      });
      const of = { apiVersion: 'example.com/v1', kind, namespace: 'n', name: 'db' };
      const waitsFor = [root.id];
      return [
        finding({ code: 'object-finalizer', subject: of, finalizer, message: 'is held', waitsFor }),
        root,
      ];
    });
    const of = namespaceResult({ name: 'n', diagnosis: diagnosis(held) });
    const [only, ...others] = viewOf(runOf([of])).causes;
    expect(others).toEqual([]);
    const fix = only?.remedies.find(({ title }) => title === 'Fix')?.actions ?? [];
    expect(fix.flatMap(({ commands }) => [...commands])).toEqual([
      'kubectl patch widgets.example.com db -n n',
      'kubectl patch gadgets.example.com db -n n',
    ]);
    const [removal, ...rest] = fix.map(({ text }) => toPlain(text));
    expect(removal).toBe('Remove this one finalizer from Widget db, and the same for Gadget db');
    expect(rest).toHaveLength(1);
  });
});
