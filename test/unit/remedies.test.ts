import { execFileSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import type { CallFailure } from '../../src/diagnose/error-kinds.ts';
import {
  admissionWebhookRemedies,
  policyDeniedRemedies,
  webhookDeniedRemedies,
} from '../../src/diagnose/remedies/admission.ts';
import {
  apiFailingRemedies,
  apiServiceRemedies,
  conversionWebhookRemedies,
  discoveryRemedies,
} from '../../src/diagnose/remedies/api.ts';
import { deletionForbiddenRemedies } from '../../src/diagnose/remedies/forbidden.ts';
import {
  contentDeletingRemedies,
  crdTerminatingRemedies,
  storageUnreadableRemedies,
} from '../../src/diagnose/remedies/general.ts';
import {
  namespaceControllerInactiveRemedies,
  namespaceFinalizerRemedies,
  namespaceSpecFinalizerRemedies,
  unexplainedRemedies,
} from '../../src/diagnose/remedies/namespace.ts';
import { type HeldObject, objectFinalizerRemedies } from '../../src/diagnose/remedies/object.ts';
import {
  ownerFailingRemedies,
  ownerMissingRemedies,
  ownerNotReadyRemedies,
  ownerRunningRemedies,
  ownerScaledToZeroRemedies,
  ownerUnknownRemedies,
} from '../../src/diagnose/remedies/owners.ts';
import {
  nodeUnavailableRemedies,
  podGraceRemedies,
  podNotConfirmedRemedies,
  volumeInUseRemedies,
} from '../../src/diagnose/remedies/pods.ts';
import type { Remedy } from '../../src/model/finding.ts';

const UID = '6a1c9d2e-0000-4000-8000-000000000001';
const WIDGETS = { group: 'example.com', version: 'v1', resource: 'widgets' };
const CAUSES: CallFailure[] = [
  'service-not-found',
  'no-endpoints',
  'refused',
  'certificate',
  'timeout',
  'other',
];

function widget(name: string, namespace = 'preview-pr-42', count = 1): HeldObject {
  return {
    object: { kind: 'Widget', namespace, name, uid: UID },
    type: WIDGETS,
    finalizer: 'widgets.example.com/cleanup',
    index: 1,
    count,
  };
}

function apiService(reason: string | undefined, name = 'adapter') {
  return {
    name: `v1.${name}`,
    group: name,
    version: 'v1',
    service: { namespace: 'monitoring', name, port: 443 },
    available: reason === undefined ? undefined : { status: 'False', reason, message: '' },
  };
}

/** Every remedy of every code, about things of this name. */
function everyRemedy(name: string): Record<string, Remedy[]> {
  const held = widget(name);
  const workload = { kind: 'Deployment', namespace: name, name };
  const service = { namespace: name, name };
  const configuration = {
    kind: 'MutatingWebhookConfiguration' as const,
    name,
    index: 0,
    webhooks: 2,
  };
  const object = { apiVersion: 'example.com/v1', kind: 'Widget', namespace: name, name };
  const pods = [{ namespace: name, name, deletionTimestamp: undefined }];
  const claim = { kind: 'PersistentVolumeClaim', namespace: name, name, uid: UID };
  const finalizers = ['kubernetes.io/pvc-protection'];
  const reasons = [
    'ServiceNotFound',
    'ServicePortError',
    'MissingEndpoints',
    'EndpointsAccessError',
    'FailedDiscoveryCheck',
    undefined,
  ];
  const forbidden = { user: name, verb: 'patch', resource: name, group: name, message: '' };
  return {
    'object-finalizer': objectFinalizerRemedies(held),
    'object-finalizer, many': objectFinalizerRemedies(widget(name, name, 3)),
    'namespace-finalizer': namespaceFinalizerRemedies({
      namespace: { name, uid: UID },
      finalizer: name,
      index: 0,
    }),
    'namespace-spec-finalizer': namespaceSpecFinalizerRemedies({
      namespace: { name, uid: UID },
      finalizer: name,
    }),
    'namespace-controller-inactive': namespaceControllerInactiveRemedies({ namespace: { name } }),
    unexplained: unexplainedRemedies({ namespace: { name } }),
    'content-deleting': contentDeletingRemedies({ type: WIDGETS }),
    'crd-terminating': crdTerminatingRemedies({ crd: name }),
    'storage-unreadable': storageUnreadableRemedies({ type: WIDGETS, namespace: name, name }),
    'storage-unreadable, no name': storageUnreadableRemedies({
      type: undefined,
      namespace: name,
      name: undefined,
    }),
    'deletion-forbidden': deletionForbiddenRemedies({
      type: WIDGETS,
      namespace: name,
      user: name,
      verb: 'list',
    }),
    'deletion-forbidden, extension API': deletionForbiddenRemedies({
      type: WIDGETS,
      namespace: name,
      backend: service,
    }),
    ...Object.fromEntries(
      reasons.flatMap((reason) =>
        [true, false].map((insideNamespace) => [
          `apiservice-unavailable, ${reason}, ${insideNamespace}`,
          apiServiceRemedies({ service: apiService(reason, name), insideNamespace }),
        ]),
      ),
    ),
    'discovery-failed': discoveryRemedies({
      group: name,
      version: 'v1',
      service: apiService('Passed', name),
    }),
    'discovery-failed, built in': discoveryRemedies({
      group: 'apps',
      version: 'v1',
      service: undefined,
    }),
    'api-failing': apiFailingRemedies({ type: WIDGETS, namespace: name, backend: service }),
    'api-failing, built in': apiFailingRemedies({ type: WIDGETS, namespace: name }),
    ...Object.fromEntries(
      CAUSES.flatMap((cause) => [
        [
          `conversion-webhook-failing, ${cause}`,
          conversionWebhookRemedies({ crd: name, cause, service, insideNamespace: false }),
        ],
        [
          `admission-webhook-failing, ${cause}`,
          admissionWebhookRemedies({
            configuration,
            webhook: name,
            cause,
            service,
            insideNamespace: false,
          }),
        ],
      ]),
    ),
    'conversion-webhook-failing, inside': conversionWebhookRemedies({
      crd: name,
      cause: 'service-not-found',
      service,
      insideNamespace: true,
    }),
    'admission-webhook-failing, inside': admissionWebhookRemedies({
      configuration,
      webhook: name,
      cause: 'service-not-found',
      service,
      insideNamespace: true,
    }),
    'admission-webhook-failing, not found': admissionWebhookRemedies({
      configuration: undefined,
      webhook: name,
      cause: 'timeout',
      insideNamespace: false,
    }),
    'admission-denied, webhook': webhookDeniedRemedies({ configuration, webhook: name }),
    'admission-denied, policy': policyDeniedRemedies({ policy: name, binding: name }),
    'pod-grace-period': podGraceRemedies({
      pod: {
        namespace: name,
        name,
        deletionTimestamp: '2026-01-01T00:00:00Z',
        deletionGracePeriodSeconds: 600,
      },
    }),
    'pod-node-unavailable': nodeUnavailableRemedies({ node: { name, exists: true }, pods }),
    'pod-node-unavailable, gone': nodeUnavailableRemedies({ node: { name, exists: false }, pods }),
    'pod-not-confirmed': podNotConfirmedRemedies({
      pod: { namespace: name, name },
      nodeName: name,
    }),
    'volume-in-use': volumeInUseRemedies({ claim: { ...claim, finalizers }, pods }),
    'owner-missing': ownerMissingRemedies({
      finalizer: name,
      owner: name,
      insideNamespace: true,
      held,
    }),
    'owner-scaled-to-zero': ownerScaledToZeroRemedies({ workload, held }),
    'owner-not-ready': ownerNotReadyRemedies({ workload, held }),
    'owner-running': ownerRunningRemedies({ workload }),
    'owner-unknown': ownerUnknownRemedies({ finalizer: name, object, known: undefined, held }),
    'owner-failing': ownerFailingRemedies({ workload, error: { kind: 'forbidden', ...forbidden } }),
  };
}

/** What a shell makes of a command: the words of every program that it would start. */
function wordsOf(commands: readonly string[]): string[] {
  const folder = mkdtempSync(join(tmpdir(), 'remedies-'));
  const script = [
    'say() { printf "%s\\0" "$@" >> words; }',
    ...['kubectl', 'jq', 'grep', 'namespace-teardown-gate', 'touch'].map(
      (program) => `${program}() { say ${program} "$@"; }`,
    ),
    ...commands,
  ].join('\n');
  writeFileSync(join(folder, 'words'), '');
  execFileSync('bash', ['-eu', '-c', script], { cwd: folder });
  expect(existsSync(join(folder, 'injected'))).toBe(false);
  return readFileSync(join(folder, 'words'), 'utf8').split('\0').slice(0, -1);
}

const REALISTIC = everyRemedy('demo-1');

describe('every remedy', () => {
  test.each(Object.entries(REALISTIC))(
    'of %s comes with the harmless ones first',
    (_code, list) => {
      expect(list.length).toBeGreaterThan(0);
      const risky = list.map(({ risk }) => risk !== undefined);
      expect(risky).toEqual([...risky].sort());
    },
  );

  test.each(Object.entries(REALISTIC))(
    'of %s says what it may cost when it removes or overrides something',
    (_code, list) => {
      for (const { role, command = '', risk } of list) {
        const words = new Set(command.split(' '));
        const isPodOfTheNamespace = words.has('pod') && !/--(?:force|grace)/.test(command);
        const isForLater = role === 'next';
        const overrides = ['delete', 'patch', 'replace', 'taint', '--force-finalize'].some((word) =>
          words.has(word),
        );
        const onlyAsks = words.has('can-i');
        if (overrides && !onlyAsks && !isPodOfTheNamespace && !isForLater)
          expect(risk, command).toBeTruthy();
        else expect(risk, command).toBeUndefined();
      }
    },
  );

  test('is an item of a list: words, one line, no full stop', () => {
    for (const { text, command, risk } of Object.values(REALISTIC).flat()) {
      expect(text).toMatch(/^[A-Z][^\n]*[^.\s]$/);
      if (command !== undefined) expect(command).toMatch(/^[a-z][^\n]*\S$/);
      if (risk !== undefined) expect(risk).toMatch(/^\S[^\n]*[^.\s]$/);
    }
  });

  const HOSTILE = [
    '$(touch injected)',
    '`touch injected`',
    "'; touch injected; '",
    '"; touch injected; "',
    "\\'; touch injected #",
    '| touch injected',
    '> injected',
    '\ntouch injected\n',
    '*',
    '!!',
    '--all',
    '-x',
    'äöü 😀 \u202e',
  ];

  const commandsFor = (name: string) =>
    Object.values(everyRemedy(name)).flatMap((list) =>
      list.flatMap(({ command }) => command ?? []),
    );

  test.each(HOSTILE)('keeps the name %j one word of a shell', (name) => {
    const plain = wordsOf(commandsFor('demo-1'));
    const words = wordsOf(commandsFor(name));
    expect(words).not.toContain('touch');
    // Word for word the same commands, with this name in place of the harmless one.
    if (!name.startsWith('-')) expect(words).toHaveLength(plain.length);
    expect(words.filter((word) => word === name).length).toBeGreaterThan(10);
  });

  test.each(['--all', '-x'])('never hands kubectl the name %s as a flag', (name) => {
    // Namespaces, users and finalizers cannot begin with a dash; names of Roles and their like can.
    for (const held of [widget(name), widget(name, 'demo', 3)]) {
      const [type, ...rest] = wordsOf([objectFinalizerRemedies(held).at(0)?.command ?? '']).slice(
        2,
      );
      expect(type).toBe(`widgets.example.com/${name}`);
      expect(rest).not.toContain(name);
    }
  });
});

describe('removing a finalizer from an object', () => {
  test('pins the object by UID and the entry by place and value', () => {
    const command = objectFinalizerRemedies(widget('db')).at(-1)?.command ?? '';
    const words = wordsOf([command]);
    expect(words.slice(0, -1)).toEqual([
      ...['kubectl', 'patch', 'widgets.example.com', 'db', '-n', 'preview-pr-42'],
      ...['--type=json', '-p'],
    ]);
    expect(JSON.parse(words.at(-1) ?? '')).toEqual([
      { op: 'test', path: '/metadata/uid', value: UID },
      { op: 'test', path: '/metadata/finalizers/1', value: 'widgets.example.com/cleanup' },
      { op: 'remove', path: '/metadata/finalizers/1' },
    ]);
  });

  test('offers the gate itself for many objects, but not in a namespace that it refuses', () => {
    const commands = (namespace: string) =>
      objectFinalizerRemedies(widget('db', namespace, 12)).map(({ command }) => command);
    expect(commands('preview-7')).toContain(
      'namespace-teardown-gate preview-7 --force-finalize objects --force-namespaces preview-7 --force-finalizers widgets.example.com/cleanup',
    );
    for (const namespace of ['default', 'kube-system', 'openshift-monitoring'])
      expect(commands(namespace)).toHaveLength(1);
  });

  test('names what a known finalizer protects, and says so when nobody knows', () => {
    const service: HeldObject = {
      ...widget('web'),
      object: { kind: 'Service', namespace: 'demo', name: 'web', uid: UID },
      type: { group: '', version: 'v1', resource: 'services' },
      finalizer: 'service.kubernetes.io/load-balancer-cleanup',
    };
    expect(objectFinalizerRemedies(service).at(-1)?.risk).toMatch(/load balancer/);
    expect(objectFinalizerRemedies(service)).toHaveLength(2);
    expect(objectFinalizerRemedies(widget('db')).at(-1)?.risk).toMatch(/nobody/);
    // What the API server has just refused is not offered.
    expect(objectFinalizerRemedies(widget('db'), true)).toEqual([]);
  });
});

describe('removing an entry of spec.finalizers', () => {
  const command =
    namespaceSpecFinalizerRemedies({
      namespace: { name: 'demo', uid: UID },
      finalizer: 'openshift.io/origin',
    }).at(-1)?.command ?? '';
  const words = wordsOf([command]);
  const filter = words[words.indexOf('jq') + 1] ?? '';

  function jq(uid: string): string {
    const namespace = {
      metadata: { uid, resourceVersion: '7', finalizers: ['a.b/c'], labels: { a: 'b' } },
      spec: { finalizers: ['kubernetes', 'openshift.io/origin', 'x.y/z'] },
    };
    const input = JSON.stringify(namespace);
    return execFileSync('jq', ['-c', filter], { input, stdio: 'pipe', encoding: 'utf8' });
  }

  test('goes to /finalize and nowhere else', () => {
    expect(command).toMatch(
      / \| kubectl replace --raw \/api\/v1\/namespaces\/demo\/finalize -f -$/,
    );
  });

  test('takes out this entry only and sends the rest back as it was read', () => {
    expect(JSON.parse(jq(UID))).toEqual({
      metadata: { uid: UID, resourceVersion: '7', finalizers: ['a.b/c'], labels: { a: 'b' } },
      spec: { finalizers: ['kubernetes', 'x.y/z'] },
    });
  });

  test('sends nothing when the name belongs to another namespace by now', () => {
    expect(() => jq('another')).toThrow(/not this namespace/);
  });
});

describe('what an APIService needs', () => {
  test('is its backend, and the namespaces then heal by themselves', () => {
    const [first, second] = apiServiceRemedies({
      service: {
        ...apiService('ServiceNotFound', 'prometheus-adapter'),
        name: 'v1beta1.metrics.k8s.io',
        group: 'metrics.k8s.io',
        version: 'v1beta1',
      },
      insideNamespace: false,
    });
    expect(first?.text).toMatch(/monitoring\/prometheus-adapter .* by themselves within 90 s/);
    expect(second).toMatchObject({
      command: 'kubectl delete apiservice v1beta1.metrics.k8s.io',
      risk: expect.stringMatching(/autoscaling/),
    });
  });

  test('is its own deletion when the backend went with the namespace', () => {
    const list = apiServiceRemedies({
      service: apiService('ServiceNotFound'),
      insideNamespace: true,
    });
    expect(list.at(-1)?.command).toBe('kubectl delete apiservice v1.adapter');
    expect(list.map(({ text }) => text).join()).not.toMatch(/Bring/);
  });
});

describe('what a webhook needs', () => {
  test('failurePolicy is changed on the very webhook that fails', () => {
    const remedies = admissionWebhookRemedies({
      configuration: {
        kind: 'ValidatingWebhookConfiguration',
        name: 'guard',
        index: 3,
        webhooks: 4,
      },
      webhook: 'guard.example.com',
      cause: 'no-endpoints',
      service: { namespace: 'guard', name: 'hooks' },
      insideNamespace: false,
    });
    expect(remedies.map(({ command }) => command)).toEqual([
      'kubectl get endpointslices -n guard -l kubernetes.io/service-name=hooks',
      `kubectl patch validatingwebhookconfiguration guard --type=json -p '[{"op":"test","path":"/webhooks/3/name","value":"guard.example.com"},{"op":"replace","path":"/webhooks/3/failurePolicy","value":"Ignore"}]'`,
      'kubectl delete validatingwebhookconfiguration guard',
    ]);
  });

  test.each(CAUSES)('cause %s has a cure of its own', (cause) => {
    const service = { namespace: 'guard', name: 'hooks' };
    const [mine, ...others] = [cause, ...CAUSES.filter((other) => other !== cause)].map(
      (each) =>
        conversionWebhookRemedies({ crd: 'a', cause: each, service, insideNamespace: false })[0]
          ?.text,
    );
    expect(others).not.toContain(mine);
  });
});

describe('pods and volumes', () => {
  test('finished pods are deleted for the claim; terminating ones are waited for', () => {
    const claim = {
      kind: 'PersistentVolumeClaim',
      namespace: 'demo',
      name: 'data',
      uid: UID,
      finalizers: ['a.b/c', 'kubernetes.io/pvc-protection'],
    };
    const done = { namespace: 'demo', name: 'done', deletionTimestamp: undefined };
    const going = { namespace: 'demo', name: 'going', deletionTimestamp: '2026-01-01T00:00:00Z' };
    const first = (pods: (typeof done | typeof going)[]) => volumeInUseRemedies({ claim, pods })[0];
    expect(first([done, going])?.command).toBe('kubectl delete pod done -n demo');
    expect(first([going])).toEqual({ text: expect.stringContaining('what holds going') });
    expect(volumeInUseRemedies({ claim, pods: [going] })[1]?.command).toContain('finalizers/1');
  });

  test('a force deletion names ten pods and says how many there are', () => {
    const pods = Array.from({ length: 25 }, (_, i) => ({ namespace: 'demo', name: `p-${i}` }));
    const last = nodeUnavailableRemedies({ node: { name: 'n', exists: true }, pods }).at(-1);
    expect(last?.text).toMatch(/the first 10 of 25/);
    expect(last?.command).toMatch(/p-9 -n demo --grace-period=0 --force$/);
  });
});

describe('owners', () => {
  test('a circle is avoided in the next run by deleting the objects first', () => {
    const list = REALISTIC['owner-missing'] ?? [];
    expect(list[0]).toMatchObject({
      role: 'next',
      text: expect.stringContaining(' before demo-1'),
      command: 'kubectl delete widgets.example.com --all -n preview-pr-42 --wait',
    });
  });

  test.each(['owner-running', 'owner-failing'])('%s offers no removal: it would race', (code) => {
    expect(REALISTIC[code]?.filter(({ risk }) => risk !== undefined)).toEqual([]);
  });

  test('what a failing owner is refused is what has to be cured', () => {
    const text = (error: Parameters<typeof ownerFailingRemedies>[0]['error']) =>
      ownerFailingRemedies({
        workload: undefined,
        error,
        serviceAccount: { namespace: 'ops', name: 'op' },
      })[0]?.text;
    expect(
      text({
        kind: 'forbidden',
        user: undefined,
        verb: 'patch',
        resource: 'widgets',
        group: 'example.com',
        message: '',
      }),
    ).toBe(
      'Grant patch on widgets.example.com to system:serviceaccount:ops:op; this shows whether it may',
    );
    expect(text({ kind: 'not-found', resource: 'secrets', group: '', name: 'cloud' })).toMatch(
      /secrets "cloud"/,
    );
    expect(text({ kind: 'namespace-terminating', namespace: 'demo', resource: 'jobs' })).toMatch(
      /must create jobs/,
    );
    expect(text({ kind: 'new-finalizers-refused', finalizers: ['a.b/c'] })).toMatch(/fault/);
    expect(text({ kind: 'other' })).toBeTruthy();
  });
});
