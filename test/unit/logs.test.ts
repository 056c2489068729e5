import { expect, test } from 'vitest';
import { maskLogSecrets } from '../../src/base/redact.ts';
import { actorsOf } from '../../src/diagnose/actors.ts';
import { contextOf } from '../../src/diagnose/context.ts';
import type { Held } from '../../src/diagnose/owner/held.ts';
import {
  logEvidence,
  logLinesAbout,
  logLinesNaming,
  logSources,
  parseLogLine,
  quotedLines,
} from '../../src/diagnose/owner/logs.ts';
import { readOk } from '../../src/model/read.ts';
import { logKey, type Snapshot } from '../../src/model/snapshot.ts';
import { keepMentions } from '../../src/observe/logs.ts';
import {
  CLEANUP,
  CONFIG_MAPS,
  contentOf,
  DELETED_AT,
  DEMO,
  group,
  objectFacts,
  podFacts,
  snapshot,
  WIDGETS,
} from './snapshots.ts';

const AT = '2026-03-02T10:01:20.123456789Z';
const UID = '0b5e1c9e-4a3f-4d39-9b9f-0b8f3a3f7a11';
const POD = 'ops/widget-operator-0/manager';

const HELD: Held = {
  finalizer: CLEANUP,
  type: WIDGETS,
  subject: { apiVersion: 'example.com/v1', kind: 'Widget', namespace: DEMO, name: 'db' },
  objects: [objectFacts(WIDGETS, 'db', { uid: UID, finalizers: [CLEANUP] })],
  count: 1,
  since: DELETED_AT,
  writers: [],
};

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
  const log = keepMentions(
    lines.map((line) => `${AT} ${line}`),
    [found],
  );
  return { ...found, logs: { [POD]: readOk(log) } };
}

function seen(lines: string[], isNamesake = false) {
  const context = contextOf(worldOf(lines, isNamesake));
  const [actor] = actorsOf(context);
  if (actor === undefined) throw new Error('no pod');
  return {
    about: logLinesAbout(context, HELD, actor),
    naming: logLinesNaming(context, HELD, actor),
    evidence: logEvidence(context, logLinesAbout(context, HELD, actor)),
  };
}

const ZAP = (more: object): string =>
  JSON.stringify({
    level: 'error',
    ts: 1.5,
    msg: 'Reconciler error',
    controller: 'widget',
    ...more,
  });

/** Line; whether it names the object; whether it points to the owner. The recording many-logs has the usual formats. */
const LINES: [title: string, line: string, about: 'object' | 'nothing', isClue: boolean][] = [
  [
    'logfmt with a bare name after the kind',
    `time="2026-03-02T10:01:20Z" level=error msg="error deprovisioning" widget=db namespace=${DEMO} reconcileID=x1`,
    'object',
    true,
  ],
  [
    'the same in another namespace',
    'time="2026-03-02T10:01:20Z" level=error msg="error deprovisioning" widget=db namespace=other reconcileID=x1',
    'nothing',
    false,
  ],
  [
    'a built-in kind with a bare name beside the object',
    `time="2026-03-02T10:01:20Z" level=error msg="cannot delete ${DEMO}/db" pod=widget-operator-0 namespace=ops`,
    'object',
    true,
  ],
  [
    'a field with name and namespace in the order of DNS',
    JSON.stringify({ level: 'error', msg: 'Unable to finalize: x', widget: `db.${DEMO}` }),
    'object',
    true,
  ],
  [
    'the DNS name of a Service',
    JSON.stringify({ level: 'error', msg: `dial tcp: lookup db.${DEMO}.svc: no such host` }),
    'nothing',
    false,
  ],
  [
    'an audit record',
    JSON.stringify({ auditID: UID, verb: 'delete', objectRef: { namespace: DEMO, name: 'db' } }),
    'nothing',
    false,
  ],
  [
    'an error about another object, which mentions this one',
    ZAP({ App: { name: 'shop', namespace: DEMO }, error: `Widget ${DEMO}/db is terminating` }),
    'nothing',
    false,
  ],
  [
    'another object of the kind in its fields, and this one in its text',
    ZAP({ controllerKind: 'Widget', namespace: DEMO, name: 'web', error: `waits for ${DEMO}/db` }),
    'nothing',
    false,
  ],
  [
    'a field that is no object',
    `level=error caller=controller/main.go msg="cannot delete ${DEMO}/db: AccessDenied"`,
    'object',
    true,
  ],
  [
    'a field of any name',
    `level=warning msg="could not delete statefulset" cluster-name=${DEMO}/db worker=0`,
    'object',
    true,
  ],
  [
    'a media type beside the object in the text',
    `level=error accept=application/json msg="cannot delete ${DEMO}/db"`,
    'object',
    true,
  ],
  [
    'an API path of another group',
    ZAP({ object: `/apis/example.net/v1/namespaces/${DEMO}/gadgets/db` }),
    'nothing',
    false,
  ],
  [
    'an API path of an object whose name begins alike',
    `E0302 10:01:20.1 1 x.go:1] Delete "https://10.0.0.1/apis/example.com/v1/namespaces/${DEMO}/widgets/db-2": EOF`,
    'nothing',
    false,
  ],
];

test.each(LINES)('%s', (_, line, about, isClue) => {
  const found = seen([line]);
  const [first] = found.about;
  expect(first === undefined ? 'nothing' : 'object').toBe(about);
  expect(found.naming.length > 0).toBe(isClue);
});

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

test('errors come first, repeats are counted, and stack traces are dropped', () => {
  const error = `boom 17\n\tat com.example.Main(Main.java:3)\nmain.go:12`;
  const failing = ZAP({ namespace: DEMO, name: 'db', error });
  const info = ZAP({ level: 'info', msg: 'Reconciling', namespace: DEMO, name: 'db' });
  const { evidence } = seen([failing, failing.replace('17', '18'), info, info]);
  expect(evidence).toEqual([
    `log of ${POD}, 10 s ago: Reconciler error: boom 18 (2 times)`,
    `log of ${POD}, 10 s ago: Reconciling (2 times)`,
  ]);
});

test('at most three lines of 300 characters are quoted', () => {
  const words = ['alpha', 'beta', 'gamma', 'delta'];
  const lines = words.map((word) =>
    ZAP({ namespace: DEMO, name: 'db', error: `${word} ${'x '.repeat(5_000)}` }),
  );
  const quoted = quotedLines(seen(lines).about);
  expect(quoted).toHaveLength(3);
  expect(quoted.every(({ line }) => line.length > 280 && line.length <= 300)).toBe(true);
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
  ];
  expect(() => seen(hostile)).not.toThrow();
  for (const line of hostile) maskLogSecrets(line);
});

test.each([
  ['password=hunter2!', 'password=***'],
  ['"secretKey": "abc/def+ghi"', '"secretKey": ***'],
  ['{\\"token\\":\\"abc\\"}', '{\\"token\\":***}'],
  ['key AKIAIOSFODNN7EXAMPLE was refused', 'key *** was refused'],
  ['wJalrXUtnFEMIK7MDENGbPxRfiCYEXAMPLEKEY is bad', '*** is bad'],
  [`Widget ${DEMO}/provider-aws-s3-dc4dc9c3f5b1-0b5e1c9e-4a3f-4d39-9b9f`, undefined],
  [`uid ${UID}, secret "db-credentials" not found`, undefined],
])('masks secrets in %s', (text, masked) => {
  expect(maskLogSecrets(text)).toBe(masked ?? text);
});

test('a line without a known format is one message', () => {
  const { text, fields, isError } = parseLogLine(`${AT} hello there`);
  expect({ text, fields, isError }).toEqual({
    text: 'hello there',
    fields: {},
    isError: false,
  });
});

/** Line, and whether it is an error. */
test.each<[line: string, isError: boolean]>([
  ['Failed to delete bucket', true],
  ['deletion goes on, 0 errors', false],
  ['bucket not found, assuming that it is deleted', false],
  ['level=info msg="failed to lock parent prefix 10.0.0.0/24"', true],
  ['level=info msg="failed to get the bucket: not found"', false],
  ['level=debug msg="failed to lock parent prefix 10.0.0.0/24"', false],
  ['2026-03-02 10:01:20.1 E | ceph: bucket in use', true],
  ['2026-03-02 10:01:20.1 I | ceph: bucket not found', false],
  ['2026-03-02 10:01:20.1 D | ceph: failed to lock', false],
  [ZAP({ level: 'info', msg: 'deleted', error: null }), false],
  [
    ZAP({ level: 'info', msg: 'deleted', stacktrace: 'sigs.k8s.io/x.Reconcile\n\t/go/x.go:1' }),
    false,
  ],
])('reads the level of %j', (line, isError) => {
  expect(parseLogLine(line).isError).toBe(isError);
});

test('reads the leading pod first, no sidecar, and the log before a crash', () => {
  const pod = (name: string, crashedAt?: string) =>
    podFacts(name, {
      namespace: 'ops',
      ownerReferences: [
        {
          ...{ apiVersion: 'apps/v1', kind: 'StatefulSet', name: 'w', uid: 'w' },
          controller: true,
        },
      ],
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
});
