import { expect, test } from 'vitest';
import { contextOf } from '../../src/diagnose/context.ts';
import { objectDetail } from '../../src/diagnose/detail.ts';
import { finalizerDomain } from '../../src/diagnose/owner/held.ts';
import { escapeRemedies } from '../../src/diagnose/owner/remedies.ts';
import { pausedBy, protectionsOf } from '../../src/diagnose/owner/settings.ts';
import {
  lastComplaint,
  refusalsFor,
  statusTexts,
  troublesOf,
} from '../../src/diagnose/owner/statements.ts';
import { forbidsDeletion } from '../../src/model/facts/metadata.ts';
import { readOk } from '../../src/model/read.ts';
import { expectPairs } from '../stub/pairs.ts';
import {
  CLEANUP,
  DELETED_AT,
  DEMO,
  heldWidget,
  objectFacts,
  snapshot,
  typeOf,
  WIDGETS,
} from './snapshots.ts';

const HELD = heldWidget({}, { generation: 2 });

const MINUTE_MS = 60_000;
const TIMES: Record<string, number> = {
  LATER: Date.parse(DELETED_AT) + 1_000,
  'LONG-AGO': Date.parse(DELETED_AT) - 60 * MINUTE_MS,
  HOUR: Date.parse(snapshot().takenAt) - 60 * MINUTE_MS,
  'HALF-HOUR': Date.parse(snapshot().takenAt) - 31 * MINUTE_MS,
};

/** A held object as its line describes it, in a deletion or before one. */
function worldOf(line: string, isForecast = false) {
  const text = line.replaceAll(/"(LATER|LONG-AGO|HOUR|HALF-HOUR)"/g, (_, time: string) =>
    JSON.stringify(new Date(TIMES[time] ?? 0).toISOString()),
  );
  const {
    annotations = {},
    spec = {},
    status = {},
    written,
    by: manager = 'operator',
    finalizer = CLEANUP,
    of,
  } = JSON.parse(text);
  const type = of === undefined ? WIDGETS : typeOf('batch', 'jobs', of);
  const deletion = isForecast ? {} : { deletionTimestamp: DELETED_AT };
  const metadata = { name: 'db', namespace: DEMO, annotations, ...deletion };
  const statusWriters = written === undefined ? [] : [{ manager, time: written }];
  const given = { finalizers: [finalizer], generation: 2, annotations, statusWriters };
  const object = objectFacts(type, 'db', given);
  const detail = objectDetail({ metadata, spec, status });
  const now = snapshot({ details: { [object.uid]: readOk(detail) } });
  if (isForecast) Object.assign(now, { forecast: {}, takenAt: DELETED_AT });
  return {
    context: contextOf(now),
    held: { ...HELD, type, finalizer, objects: [object] },
    object,
    detail,
  };
}

const texts = (all: readonly { text: string }[]): string[] => all.map(({ text }) => text);
const QUESTIONS: Record<string, (line: string) => unknown> = {
  status: (line) => {
    const { context, held } = worldOf(line);
    const errors = refusalsFor(context, held).map(({ error }) => error.text);
    return { errors, texts: texts(statusTexts(context, held)) };
  },
  ahead: (line) => {
    const { context, held } = worldOf(line, true);
    return refusalsFor(context, held).map(({ error }) => error.text);
  },
  before: (line) => {
    const { context, held } = worldOf(line);
    return lastComplaint(context, held)?.text ?? null;
  },
  pause: (line) => {
    const { context, held } = worldOf(line);
    return pausedBy(context, held)?.by ?? null;
  },
  asks: (line) => {
    const { context, held, object } = worldOf(line, true);
    return [...troublesOf(context, object), ...protectionsOf(context, held)];
  },
  names: (line) => (worldOf(line).detail.names ?? []).map(({ name }) => name),
  refers: (line) => worldOf(line).detail.references.map(({ kind, name }) => `${kind} ${name}`),
  forbids: (line) => {
    const [key = '', value = ''] = line.split('=');
    return forbidsDeletion(key, value);
  },
};

test('what a held object says', () =>
  expectPairs('held-objects.txt', (line) => {
    const [, question = '', rest = ''] = /^(\w+) (.*)$/.exec(line) ?? [];
    return QUESTIONS[question]?.(rest);
  }));

test('long texts of a status are cut where they are read', () => {
  const long = `cannot do ${'x y '.repeat(250_000)}`;
  const conditions = [{ type: 'Ready', status: 'False', reason: 'R', message: long }];
  const detail = objectDetail({ status: { message: long, lastError: long, conditions } });
  expect(detail.texts).toHaveLength(1);
  expect(JSON.stringify(detail).length).toBeLessThan(20_000);
});

test.each(['a', '[', 'a ', '\n'])(
  'a status of a million times %j is read in linear time',
  (unit) => {
    const text = unit.repeat(1_000_000);
    expect(
      objectDetail({ status: { lastErrorDetail: text, phase: 'Failed', text } }),
    ).toBeDefined();
  },
);

test.each([
  ['widget.finalizers.platform.example.com', 'own'],
  ['finalizers.widget.example.com', 'own'],
  ['gadget.finalizers.platform.example.com', 'foreign'],
  ['finalizer', 'none'],
  ['acme.finalizer.name', 'none'],
  ['finalizer.acme', 'none'],
])('of the group platform.example.com, the domain %s is %s', (finalizer, relation) => {
  const type = { ...WIDGETS, kind: 'AcmeWidget', group: 'platform.example.com' };
  const context = contextOf(snapshot({ discovery: readOk({ types: [type], failedGroups: [] }) }));
  expect(finalizerDomain(context, { ...HELD, type, finalizer }).relation).toBe(relation);
});

const MANAGED = 'finalizer.managedresource.crossplane.io';

test.each([
  [
    'storage.cnrm.cloud.google.com',
    'cnrm.cloud.google.com/finalizer',
    true,
    '"abandon"',
    'managementPolicies',
  ],
  ['s3.aws.m.upbound.io', MANAGED, true, 'managementPolicies', 'deletionPolicy'],
  ['s3.aws.upbound.io', MANAGED, false, 'deletionPolicy', 'managementPolicies'],
])(
  'where a product has a setting for it, the object of %s is deleted and what it stands for is kept',
  (...row) => {
    const [group, finalizer, namespaced, has, lacks] = row;
    const objects = ['db', 'cache'].map((name) => objectFacts(WIDGETS, name, {}));
    const held = { ...HELD, type: { ...WIDGETS, group, namespaced }, finalizer, objects, count: 5 };
    const [first] = escapeRemedies(held);
    expect(first?.command).toContain(
      `kubectl patch widgets.${group} db cache -n ${DEMO} --type=merge -p`,
    );
    expect(first?.command).toContain(has);
    expect(first?.command).not.toContain(lacks);
    expect(first?.command).not.toContain('Delete');
    expect(first?.text).toMatch(/delete only Widget db, cache \(the first 2 of 5\)$/);
    expect(first?.risk).toMatch(/resource.* stays/);
    expect(escapeRemedies(HELD)).toEqual([]);
  },
);
