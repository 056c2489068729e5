import { describe, expect, test } from 'vitest';
import { contextOf } from '../../src/diagnose/context.ts';
import { diagnose } from '../../src/diagnose/diagnose.ts';
import { heldObjects } from '../../src/diagnose/owner/finalizers.ts';
import { idsInText, namespacesAwaited, objectsAwaited } from '../../src/diagnose/waits.ts';
import { findingsOf } from '../../src/model/finding.ts';
import { readFailed, readOk } from '../../src/model/read.ts';
import { readRecordedLook } from './recorded-looks.ts';

describe('a status text', () => {
  const context = contextOf(readRecordedLook('chain-sibling').now);
  const helds = heldObjects(context);
  const held = helds.find(({ subject }) => subject.kind === 'Widget');

  test.each([
    ['Part db-data still exists', 1],
    ['waiting for parts/db-data to be deleted', 1],
    ['2 Parts remain: db-data, db-log', 1],
    ['the removal is blocked by parts/db-data', 1],
    ['Part db-data depends on it', 1],
    ['waiting for example.com/Part/db-data', 1],
    [`waiting for Part ${context.now.namespace.name}/db-data`, 1],
    ['Part db-data is not ready', 1],
    ['waiting for db-data', 1],
    ['db-data still exists', 1],
    ['db-data must be deleted first', 1],
    ['deletion pending on parts.example.com/db-data', 1],
    ['it cannot be deleted: it has parts: db-data', 1],
    ['1 of 4 children left: part/db-data', 1],
    // The name is that of an object elsewhere, and the clause that waits is about another one.
    ['waiting for Part elsewhere/db-data', 0],
    ['Part db-data is kept; waiting for Part db-log', 0],
    ['1 apartment remaining', 0],
    // It names no held object of this kind and name.
    ['Part db still exists', 0],
    ['Part db-data-1 still exists', 0],
    ['Widget db still exists', 0],
    // It names the sibling and does not wait for it.
    ['Part db-data was deleted', 0],
    ['db-data-1 still exists', 0],
    ['db-data is ready', 0],
    ['waiting for Part db-data: connection refused', 0],
    ['Part db-data does not exist', 0],
  ])('%j names the object that is waited for: %i', (text, links) => {
    if (held === undefined) throw new Error('the recording has no Widget');
    expect(idsInText(context, held, text)).toHaveLength(links);
  });
});

describe('a status text about a namespace', () => {
  const { now } = readRecordedLook('behind-status');
  const context = contextOf(now);
  const [held] = heldObjects(context);
  const name = held && namespacesAwaited(context, held)[0]?.subject.name;

  test.each([
    ['waiting for namespace CHILD to be deleted', 1],
    ['Namespaces "CHILD" still exist', 1],
    // The namespace is the place of something else, another one, or the request failed.
    ['waiting for the credentials in namespace CHILD', 0],
    ['waiting for namespace CHILD-2 to be deleted', 0],
    ['waiting for CHILD', 0],
    ['waiting for namespace CHILD: connection refused', 0],
  ])('%j names the namespace as waited for: %i', (text, links) => {
    if (held === undefined || !name) throw new Error('nothing is held in the recording');
    expect(idsInText(context, held, text.replace('CHILD', name))).toHaveLength(links);
  });
});

describe('a chain that the examination cuts', () => {
  const { now, before } = readRecordedLook('chain-long');
  const cut = Object.keys(now.partners).find((key) => key.includes('link-2'));
  const partners = {
    ...now.partners,
    [`${cut}`]: readFailed({ kind: 'aborted', message: 'stopped before the answer came' }),
  };

  test('has no root cause behind the cut, and reports the cut', () => {
    const diagnosis = diagnose({ ...now, partners }, before);
    expect(diagnosis.rootCauses).toEqual([]);
    const last = findingsOf(diagnosis, diagnosis.blockers).length;
    expect(last).toBe(1);
    expect(diagnosis.findings.flatMap(({ evidence }) => evidence).join('\n')).toMatch(
      /Link \S*link-3\S* names Link \S*link-2\S*, which was not read in time/,
    );
  });

  test('names its last link if that was read', () => {
    const [root] = findingsOf(diagnose(now, before), diagnose(now, before).rootCauses);
    expect(root?.code).toBe('owner-scaled-to-zero');
  });
});

describe('a webhook whose configuration could not be read', () => {
  const { now, before } = readRecordedLook('S15');
  const unread = readFailed({ kind: 'forbidden', message: '403 Forbidden' });
  const cluster = { ...now.cluster, validatingWebhooks: unread, mutatingWebhooks: unread };

  test('is named without a configuration', () => {
    const { findings } = diagnose({ ...now, cluster }, before);
    const subjects = findings
      .filter(({ code }) => code === 'admission-webhook-failing')
      .map(({ subject }) => subject.kind);
    expect(subjects).toEqual(['Webhook']);
  });
});

describe('an object that a status text calls missing', () => {
  const { now, before } = readRecordedLook('gone-in-words');
  const messageFor = (text: string): string => {
    const said = JSON.stringify(now)
      .replaceAll('giving up: the login in secret db-login is missing', text)
      .replaceAll('NAMESPACE', now.namespace.name);
    const { findings } = diagnose(JSON.parse(said), before);
    return findings.find(({ code }) => code === 'owner-failing')?.message ?? '';
  };

  test.each([
    ['cannot get secret NAMESPACE/login: secrets \\"login\\" not found', true],
    ['deployment web.NAMESPACE query error: deployments.apps \\"web\\" not found', true],
    ['no login in namespace NAMESPACE: secrets \\"login\\" not found', true],
    ['no login in namespace NAMESPACE-2: secrets \\"login\\" not found', false],
    // The held object itself, an object of another namespace, and something that is no object.
    ['the volume of NAMESPACE/db was not found', false],
    ['credential vault/login was not found', false],
    ['credential \\"NAMESPACE/login\\" was not found', true],
    ['cannot delete NAMESPACE/login: bucket 7 not found', false],
  ])('%j was deleted with the namespace: %j', (text, isHere) => {
    expect(/can never succeed/.test(messageFor(text))).toBe(isHere);
  });
});

test.each([
  ['example.com/widget-name', 'db', 1],
  ['parts.example.com/owned-by', 'NAMESPACE/db', 1],
  // Another object, another project, and labels that any chart sets.
  ['example.com/widget-name', 'db-2', 0],
  ['example.net/widget-name', 'db', 0],
  ['app.kubernetes.io/instance', 'db', 0],
  ['instance', 'db', 0],
])('a label %s=%s makes an object a part of what it names: %i', (key, value, count) => {
  const { now } = readRecordedLook('chain-sibling');
  const { name } = now.namespace;
  for (const { read } of now.content) {
    for (const { examples } of read.ok ? read.value.terminating : []) {
      for (const object of examples) object.labels = { [key]: value.replace('NAMESPACE', name) };
    }
  }
  const context = contextOf(now);
  const held = heldObjects(context).find(({ subject }) => subject.kind === 'Widget');
  if (held === undefined) throw new Error('the recording has no Widget');
  expect(objectsAwaited(context, held, ['owned'])).toHaveLength(count);
});

test.each([
  ['name each other in their specs', 'spec.claimRef', 1],
  ['are named by one side alone', 'spec.other', 0],
])('objects that %s, as a claim and its composite: %i', (_, field, count) => {
  const { now } = readRecordedLook('chain-sibling');
  const context = contextOf(now);
  const held = heldObjects(context).find(({ subject }) => subject.kind === 'Widget');
  const [claim] = held?.objects ?? [];
  if (held === undefined || claim === undefined) throw new Error('the recording has no Widget');
  const refer = (kind: string, name: string, namespace: string | undefined, by: string) =>
    readOk({
      ...{ conditions: [], observedGeneration: undefined, texts: [] },
      references: [{ group: 'example.com', kind, namespace, name, field: by }],
    });
  const composite = {
    ...claim,
    kind: 'XWidget',
    namespace: '',
    name: 'db-x7k2p',
    uid: 'composite',
  };
  now.partners = { composite: readOk(composite) };
  now.details = {
    [claim.uid]: refer('XWidget', composite.name, '', 'spec.resourceRef'),
    composite: refer('Widget', count === 1 ? claim.name : 'another', claim.namespace, field),
  };
  expect(objectsAwaited(contextOf(now), held, ['named'])).toHaveLength(count);
});
