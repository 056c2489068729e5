import { describe, expect, test } from 'vitest';
import { dictionary, isObject, type Json } from '../../src/base/json.ts';
import { diagnose } from '../../src/diagnose/diagnose.ts';
import { wantedFor } from '../../src/diagnose/wanted.ts';
import { planForce } from '../../src/force/plan.ts';
import { foresee } from '../../src/forecast/predict.ts';
import { namespaceFacts } from '../../src/model/facts/metadata.ts';
import type { ActivePolicy } from '../../src/model/outcome.ts';
import type { Snapshot } from '../../src/model/snapshot.ts';
import { observe } from '../../src/observe/observe.ts';
import { FakeClock } from '../stage/fake-clock.ts';
import { FakeCluster, WIDGETS } from '../stage/fake-cluster.ts';
import { DEMO } from '../stage/gate-run.ts';
import { type RecordedLooks, readRecordedLook } from './recorded-looks.ts';

/** Names that every JavaScript object has, each beside an ordinary name that is sorted like it. */
const NAMES = [
  ['constructor', 'constructos'],
  ['__proto__', '__protp__'],
  ['toString', 'toStrinh'],
] as const;

const RECORDINGS = ['S3', 'S4', 'S7', 'S15', 'S28', 'S89'];

/** A few names of each kind: nodes, namespaces, finalizers, labels, accounts, types, groups, field managers. */
function namesIn({ now }: RecordedLooks): string[] {
  const held = now.content.flatMap(({ type, read }) =>
    read.ok
      ? read.value.terminating.flatMap(({ examples }) => examples.map((one) => ({ ...one, type })))
      : [],
  );
  const pods = now.pods.ok ? now.pods.value : [];
  const kinds = [
    [...Object.keys(now.nodes), ...pods.flatMap(({ nodeName }) => nodeName ?? [])],
    [now.namespace.name, ...Object.keys(now.places)],
    [...now.namespace.finalizers, ...held.flatMap(({ finalizers }) => finalizers)],
    [...held, ...pods].flatMap(({ labels }) => Object.keys(labels)),
    pods.map(({ account }) => account),
    held.flatMap(({ kind, type }) => [kind, type.resource, type.group]),
    Object.keys(now.definitions),
    held.flatMap(({ writers }) => writers.map(({ manager }) => manager)),
  ];
  const few = kinds.flatMap((names) =>
    [...new Set(names)].filter((name) => name !== '').slice(0, 3),
  );
  return [...new Set(few)];
}

/** Reads JSON as the program makes it: what has names as keys has no prototype. */
function revive(text: string): RecordedLooks {
  const withoutPrototype = (_: string, value: Json): Json =>
    isObject(value) ? (dictionary(Object.entries(value)) as Json) : value;
  return JSON.parse(text, withoutPrototype as (key: string, value: unknown) => unknown);
}

function everythingAbout({ before, now }: RecordedLooks): string {
  const diagnosis = diagnose(now, before);
  const present = { content: now.content, pods: now.pods };
  const forecast = { deletions: dictionary<never>(), together: [], present };
  const alive = { ...now, namespace: { ...now.namespace, deletionTimestamp: undefined }, forecast };
  const policy: ActivePolicy = {
    ...{ mode: 'namespace', namespaces: ['*'], label: undefined, finalizers: ['*'] },
    ...{ pods: true, orphans: 'accept' },
  };
  const plan = planForce({
    ...{ snapshot: now, diagnosis, policy, startUid: now.namespace.uid, ownNamespace: 'ci' },
  });
  const wanted = wantedFor(now, before);
  return JSON.stringify({ diagnosis, plan, foreseen: foresee(alive, true), wanted });
}

/** The same snapshot before anything was read by name: what was not read must not seem to be there. */
function unread(now: Snapshot): Snapshot {
  const empty = () => dictionary<never>();
  return {
    ...{ ...now, nodes: empty(), places: empty(), definitions: empty(), details: empty() },
    ...{ partners: empty(), trials: empty() },
  };
}

describe('names such as __proto__ change nothing', () => {
  test.each(RECORDINGS)('in %s', (id) => {
    const looks = readRecordedLook(id);
    const text = JSON.stringify(looks);
    const failures: string[] = [];
    namesIn(looks).forEach((name, index) => {
      const [evil, ordinary] = NAMES[index % NAMES.length] as (typeof NAMES)[number];
      const about = (other: string): string => {
        const renamed = revive(text.replaceAll(JSON.stringify(name), JSON.stringify(other)));
        const { before, now } = renamed;
        try {
          return (
            everythingAbout(renamed) + everythingAbout({ ...renamed, before, now: unread(now) })
          );
        } catch (error) {
          return String(error);
        }
      };
      if (about(evil).replaceAll(evil, ordinary) !== about(ordinary)) {
        failures.push(`${name} as ${evil}`);
      }
    });
    expect(failures).toEqual([]);
  });
});

test('objects whose keys are names from the cluster have no prototype', async () => {
  const clock = new FakeClock();
  const cluster = new FakeCluster(clock);
  cluster.held(WIDGETS, DEMO, 'db', 'widgets.example.com/cleanup');
  const namespace = { ...namespaceFacts({ metadata: { labels: { a: 'b' } } }), name: DEMO };
  const deps = { api: cluster, clock, signal: new AbortController().signal };
  const [seen] = await observe([namespace], (now) => wantedFor(now), deps);
  const { places, nodes, definitions, details, partners, trials } = seen as Snapshot;
  const labels = [namespace.labels];
  for (const keyed of [places, nodes, definitions, details, partners, trials, ...labels]) {
    expect(Object.getPrototypeOf(keyed)).toBe(null);
  }
});
