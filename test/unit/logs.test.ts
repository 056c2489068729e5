import { expect, test } from 'vitest';
import { maskLogSecrets } from '../../src/base/redact.ts';
import { actorsOf } from '../../src/diagnose/actors.ts';
import { contextOf } from '../../src/diagnose/context.ts';
import type { Held } from '../../src/diagnose/owner/held.ts';
import {
  logLinesAbout,
  logLinesNaming,
  logSources,
  parseLogLine,
  quotedLines,
} from '../../src/diagnose/owner/logs.ts';
import { readOk } from '../../src/model/read.ts';
import { logKey, type Snapshot } from '../../src/model/snapshot.ts';
import { keepMentions } from '../../src/observe/logs.ts';
import { expectPairs } from '../stub/pairs.ts';
import {
  CLEANUP,
  CONFIG_MAPS,
  contentOf,
  DEMO,
  group,
  heldWidget,
  podFacts,
  snapshot,
  WIDGETS,
} from './snapshots.ts';

const AT = '2026-03-02T10:01:20.123456789Z';
const UID = '0b5e1c9e-4a3f-4d39-9b9f-0b8f3a3f7a11';
const POD = 'ops/widget-operator-0/manager';

const HELD = heldWidget({}, { uid: UID });

/** A pod that wrote these lines; a ConfigMap called like the Widget is held as well. */
function worldOf(lines: string[], isNamesake = false): Snapshot {
  const types = [contentOf(WIDGETS, [group(WIDGETS, [CLEANUP], { names: ['db'] })])];
  if (isNamesake)
    types.push(contentOf(CONFIG_MAPS, [group(CONFIG_MAPS, ['a/b'], { names: ['db'] })]));
  else types.push(contentOf(CONFIG_MAPS));
  const pod = podFacts('widget-operator-0', {
    namespace: 'ops',
    deletionTimestamp: undefined,
    containers: [{ name: 'manager' }, { name: 'kube-rbac-proxy' }],
  });
  const found = snapshot({ content: types });
  found.places['ops'] = { pods: readOk([pod]) };
  const stamped = lines.map((line) => `${AT} ${line}`);
  const log = keepMentions(stamped, [found]);
  return { ...found, logs: { [POD]: readOk(log) } };
}

function seen(lines: string[], isNamesake = false) {
  const context = contextOf(worldOf(lines, isNamesake));
  const [actor] = actorsOf(context);
  if (actor === undefined) throw new Error('no pod');
  return {
    about: logLinesAbout(context, HELD, actor),
    naming: logLinesNaming(context, HELD, actor),
    quoted: quotedLines(context, HELD, [actor]),
  };
}

const ERROR = { level: 'error', ts: 1.5, msg: 'Reconciler error', controller: 'widget' };
const ZAP = (more: object): string => JSON.stringify({ ...ERROR, ...more });

test('what a line of a log is about, how bad it is, and what of it is secret', () =>
  expectPairs('log-lines.txt', (given) => {
    const [, question, line = ''] = /^(\w+) (.*)$/.exec(given) ?? [];
    if (question === 'mask') return maskLogSecrets(line);
    if (question === 'level') return parseLogLine(line).isError ? 'error' : 'no error';
    const { about, naming } = seen([line]);
    return { about: about.length > 0, pointsToTheOwner: naming.length > 0 };
  }));

test('a line with the UID of the object is about it', () => {
  const uid = 'uid-widgets-db';
  const [object] = HELD.objects;
  const held = { ...HELD, objects: [{ ...object, uid }] } as Held;
  const context = contextOf(worldOf([`finalizing ${uid}`]));
  const [actor] = actorsOf(context);
  expect(actor && logLinesNaming(context, held, actor)).toHaveLength(1);
});

test('an object of another kind with the same name makes a line without a kind ambiguous', () => {
  const line = `E0302 10:01:20.1       1 sync.go:99] error syncing '${DEMO}/db': AccessDenied`;
  expect(seen([line]).naming).toHaveLength(1);
  expect(seen([line], true).naming).toHaveLength(0);
});

test('errors come first, repeats once, and stack traces are dropped', () => {
  const error = `boom 17\n\tat com.example.Main(Main.java:3)\nmain.go:12`;
  const failing = ZAP({ namespace: DEMO, name: 'db', error });
  const info = ZAP({ level: 'info', msg: 'Reconciling', namespace: DEMO, name: 'db' });
  const { quoted } = seen([failing, failing.replace('17', '18'), info, info]);
  expect(quoted.evidence).toEqual([
    `log of ${POD}, 10 s ago: Reconciler error: boom 18`,
    `log of ${POD}, 10 s ago: Reconciling`,
  ]);
});

test('at most three lines of 300 characters are quoted', () => {
  const words = ['alpha', 'beta', 'gamma', 'delta'];
  const lines = words.map((word) =>
    ZAP({ namespace: DEMO, name: 'db', error: `${word} ${'x '.repeat(5_000)}` }),
  );
  const { ownerLog } = seen(lines).quoted;
  expect(ownerLog).toHaveLength(3);
  expect(ownerLog?.every(({ line }) => line.length > 280 && line.length <= 300)).toBe(true);
});

// Two million characters: a search whose steps grow with their square would not end.
test('hostile lines neither throw nor hang', () => {
  const hostile = [
    `${DEMO} ${'{'.repeat(2_000_000)}`,
    `${DEMO} ${'a="'.repeat(800_000)}`,
    `${DEMO} ${'\\"'.repeat(800_000)}`,
    `{"namespace":"${DEMO}","name":{"name":["db"]},"error":{"a":1},"msg":7}`,
    `${DEMO}/db ${'\u0000\ufffd\u001b[31m'.repeat(300_000)}`,
    `${`${DEMO}/`.repeat(300_000)}`,
    `E0302 ${'1'.repeat(2_000_000)} ${DEMO}`,
    `${DEMO}\nx Traceback (${'\nx   a'.repeat(500_000)}`,
  ];
  expect(() => seen(hostile)).not.toThrow();
  for (const line of hostile) maskLogSecrets(line);
});

const BY = { apiVersion: 'apps/v1', kind: 'StatefulSet', name: 'w', uid: 'w', controller: true };

test('reads the leading pod first, no sidecar, and the log before a crash', () => {
  const pod = (name: string, crashedAt?: string) =>
    podFacts(name, {
      namespace: 'ops',
      ownerReferences: [BY],
      containers: [{ name: 'manager', crashedAt }, { name: 'kube-rbac-proxy' }],
    });
  const late = '2026-03-02T10:00:30Z';
  const found = snapshot({ logs: {} });
  found.places['ops'] = {
    pods: readOk([pod('w-0'), pod('w-1', late), pod('w-2', '2026-03-02T09:00:00Z')]),
  };
  found.cluster.leases = readOk([
    { namespace: 'ops', name: 'w', holder: 'w-1_0b5e', renewTime: undefined, durationSeconds: 15 },
  ] as never);
  const context = contextOf(found);
  const [actor] = actorsOf(context);
  expect(actor && logSources(context, actor).map(logKey)).toEqual([
    'ops/w-1/manager',
    'ops/w-1/manager (previous)',
    'ops/w-0/manager',
  ]);
});

test('only lines that mention the namespace or a held object are kept', () => {
  const kept = [`about ${DEMO}`, 'about uid-widgets-db', 'Failed to watch *v1.Widget'];
  expect(keepMentions(['about other', ...kept, 'x'], [worldOf([])])).toEqual(kept);
  const trace = ['Traceback (most recent call last):', '  File "x"', '    a(', 'Denied: no', 'x'];
  const failed = ['x', kept[0], ...trace, kept[0]].map((line) => `${AT} ${line}`);
  const told = [`${AT} ${kept[0]} Denied: no`, `${AT} ${kept[0]}`];
  expect(keepMentions(failed, [worldOf([])])).toEqual(told);
});
