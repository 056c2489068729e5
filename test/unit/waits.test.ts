import { expect, test } from 'vitest';
import { type Context, contextOf } from '../../src/diagnose/context.ts';
import { diagnose } from '../../src/diagnose/diagnose.ts';
import { heldObjects } from '../../src/diagnose/owner/finalizers.ts';
import type { Held } from '../../src/diagnose/owner/held.ts';
import { idsTold, namespacesAwaited, objectsAwaited, typeNamed } from '../../src/diagnose/waits.ts';
import { findingsOf } from '../../src/model/finding.ts';
import { readFailed, readOk } from '../../src/model/read.ts';
import type { ObjectFacts, Snapshot } from '../../src/model/snapshot.ts';
import { expectPairs } from '../stub/pairs.ts';
import { heldIn, told } from './changes.ts';
import { readRecordedLook } from './recorded-looks.ts';
import { contentOf, group, snapshot, typeOf, WIDGETS } from './snapshots.ts';

/** What is held in a recording. */
function worldOf(now: Snapshot): { context: Context; held: Held } {
  const context = contextOf(now);
  const all = heldObjects(context);
  const held = all.find(({ subject }) => subject.kind === 'Widget') ?? all[0];
  if (held === undefined) throw new Error('nothing is held in the recording');
  return { context, held };
}

const siblings = worldOf(readRecordedLook('chain-sibling').now);
const child = worldOf(readRecordedLook('behind-status').now);
const [{ subject: awaited } = { subject: { name: '' } }] = namespacesAwaited(
  child.context,
  child.held,
);

const QUESTIONS: Record<string, (text: string) => boolean> = {
  object: (text) => {
    const { context, held } = siblings;
    const said = text.replace('NAMESPACE', context.now.namespace.name);
    return idsTold(context, held, [said]).length > 0;
  },
  word: (text) => {
    const { now } = readRecordedLook('chain-sibling');
    const { context, held } = worldOf(
      JSON.parse(JSON.stringify(now).replaceAll('db-data', 'cache')),
    );
    return idsTold(context, held, [text]).length > 0;
  },
  namespace: (text) =>
    idsTold(child.context, child.held, [text.replace('CHILD', awaited.name)]).length > 0,
  lost: (text) => {
    const { name } = readRecordedLook('gone-in-words').now.namespace;
    const { owners } = told(
      'gone-in-words',
      () => {},
      (whole) =>
        whole
          .replaceAll('giving up: the login in secret db-login is missing', text)
          .replaceAll('NAMESPACE', name),
    );
    const failing = owners.find(({ code }) => code === 'owner-failing');
    return /can never succeed/.test(failing?.message ?? '');
  },
  label: (text) => {
    const { now } = readRecordedLook('chain-sibling');
    const [key = '', value = ''] = text.replace('NAMESPACE', now.namespace.name).split('=');
    for (const object of heldIn(now)) object.labels = { [key]: value };
    const { context, held } = worldOf(now);
    return objectsAwaited(context, held, ['part']).length > 0;
  },
};

test('what an object waits for, by its words and labels', () =>
  expectPairs('waits.txt', (line) => {
    const [, question = '', text = ''] = /^(\w+) (.*)$/.exec(line) ?? [];
    return QUESTIONS[question]?.(text);
  }));

test('a chain that the examination cuts has no root cause behind the cut, and reports the cut', () => {
  const { now, before } = readRecordedLook('chain-long');
  const cut = Object.keys(now.partners).find((key) => key.includes('link-2'));
  const unread = readFailed({ kind: 'aborted', message: 'stopped before the answer came' });
  const diagnosis = diagnose({ ...now, partners: { ...now.partners, [`${cut}`]: unread } }, before);
  expect(diagnosis.rootCauses).toEqual([]);
  expect(findingsOf(diagnosis, diagnosis.blockers)).toHaveLength(1);
  expect(diagnosis.findings.flatMap(({ evidence }) => evidence).join('\n')).toMatch(
    /Link \S*link-3\S* names Link \S*link-2\S*, which was not read in time/,
  );
  expect(told('chain-long').root.code).toBe('owner-scaled-to-zero');
});

test('a webhook whose configuration could not be read is named without it', () => {
  const unread = readFailed({ kind: 'forbidden', message: '403 Forbidden' });
  const { findings } = told('S15', ({ cluster }) =>
    Object.assign(cluster, { validatingWebhooks: unread, mutatingWebhooks: unread }),
  );
  const failing = findings.filter(({ code }) => code === 'admission-webhook-failing');
  expect(failing.map(({ subject }) => subject.kind)).toEqual(['Webhook']);
});

test.each([
  ['name each other in their specs', 'spec.claimRef', 1],
  ['are named by one side alone', 'spec.other', 0],
])('objects that %s, as a claim and its composite: %i', (_, field, count) => {
  const { now } = readRecordedLook('chain-sibling');
  const { held } = worldOf(now);
  const [claim] = held.objects;
  if (claim === undefined) throw new Error('the recording has no Widget');
  const refer = (kind: string, name: string, namespace: string | undefined, by: string) =>
    readOk({
      ...{ conditions: [], observedGeneration: undefined, texts: [] },
      references: [{ group: 'example.com', kind, namespace, name, field: by }],
    });
  const own = { kind: 'XWidget', namespace: '', name: 'db-x7k2p', uid: 'composite' };
  now.partners = { composite: readOk({ ...claim, ...own }) };
  now.details = {
    [claim.uid]: refer('XWidget', own.name, '', 'spec.resourceRef'),
    composite: refer('Widget', count === 1 ? claim.name : 'another', claim.namespace, field),
  };
  expect(objectsAwaited(contextOf(now), held, ['named'])).toHaveLength(count);
});

test("Kubernetes' own finalizer of an object waits for what that owns, and not for what only names it in a label", () => {
  const gadgets = typeOf('example.com', 'gadgets', 'Gadget');
  const waitsFor = (given: Partial<ObjectFacts>): number => {
    const held = group(WIDGETS, ['foregroundDeletion'], { names: ['db'] });
    const part = group(gadgets, ['other.io/cleanup'], { names: ['part'] });
    Object.assign(part.examples[0] ?? {}, given);
    const content = [contentOf(WIDGETS, [held]), contentOf(gadgets, [part])];
    const { findings } = diagnose(snapshot({ content }));
    return findings.filter(
      ({ id, waitsFor: ids }) => id.includes('Widget') && ids.some((one) => one.includes('Gadget')),
    ).length;
  };
  const owner = { apiVersion: 'example.com/v1', kind: 'Widget', name: 'db', uid: 'uid-widgets-db' };
  expect(waitsFor({ ownerReferences: [{ ...owner, controller: true }] })).toBe(1);
  expect(waitsFor({ labels: { 'example.com/widget': 'db' } })).toBe(0);
});

test.each([
  ['db.acme.example', 'acme.example'],
  ['other.example', 'other.example'],
  ['unrelated.io', 'first.example'],
])(
  'a kind that an object of %s names, and that several groups have, is that of %s',
  (own, group) => {
    const groups = ['first.example', 'acme.example', 'other.example'];
    const content = groups.map((one) => contentOf(typeOf(one, 'configs', 'Config')));
    expect(typeNamed(contextOf(snapshot({ content })), own, 'config')?.group).toBe(group);
  },
);
