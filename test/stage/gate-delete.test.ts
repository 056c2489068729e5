import { describe, expect, test } from 'vitest';
import { InputError } from '../../src/base/errors.ts';
import { collectionPath } from '../../src/kubernetes/paths.ts';
import { readFailed, readOk } from '../../src/model/read.ts';
import type { ResourceType } from '../../src/model/snapshot.ts';
import {
  BROKEN,
  CONFIG_MAPS,
  type FakeCluster,
  FORBIDDEN,
  pathOf,
  REFUSED,
  UNAUTHORIZED,
  WIDGETS,
} from './fake-cluster.ts';
import { causes, DEMO, stage } from './gate-run.ts';

const PATH = pathOf.namespace(DEMO);
const DELETE = { delete: 'true' };

/** What a DELETE was pinned to. */
function pins(mutations: readonly string[]): { uid: string }[] {
  return mutations.map((line) => JSON.parse(line.slice(line.indexOf('{'))));
}

/** A controller in the namespace that may do everything with the types of this group. */
function install(cluster: FakeCluster, name: string, group: string): void {
  const metadata = { namespace: DEMO, name, uid: `uid-${name}` };
  const rbac = `/apis/rbac.authorization.k8s.io/v1/namespaces/${DEMO}`;
  cluster.put(`/apis/apps/v1/namespaces/${DEMO}/deployments/${name}`, {
    metadata,
    spec: { template: { spec: { serviceAccountName: name } } },
  });
  cluster.put(`${rbac}/roles/${name}`, {
    metadata,
    rules: [{ apiGroups: [group], resources: ['*'], verbs: ['*'] }],
  });
  cluster.put(`${rbac}/rolebindings/${name}`, {
    metadata,
    roleRef: { kind: 'Role', name },
    subjects: [{ kind: 'ServiceAccount', namespace: DEMO, name }],
  });
}

describe('delete', () => {
  test('requests the deletion of exactly the namespace that was read, then waits', async () => {
    const { clock, cluster, lines, runOne } = stage();
    cluster.namespace(DEMO, { active: true });
    let announced: readonly string[] = [];
    cluster.beforeWrite = () => {
      announced = [...lines];
    };
    clock.at(30_000, () => cluster.remove(DEMO));
    const result = await runOne(DELETE);
    expect(result).toMatchObject({ outcome: 'deleted', verdict: 'pass' });
    expect(announced).toContain(`${DEMO}: asking for its deletion (UID uid-of-${DEMO})`);
    expect(cluster.mutations).toHaveLength(1);
    expect(cluster.mutations[0]).toMatch(`DELETE ${PATH} `);
    expect(pins(cluster.mutations)).toEqual([{ uid: `uid-of-${DEMO}` }]);
  });

  test('does not request the deletion of a terminating namespace again', async () => {
    const { clock, cluster, runOne } = stage(DEMO);
    clock.at(30_000, () => cluster.remove(DEMO));
    expect((await runOne(DELETE)).outcome).toBe('deleted');
    expect(cluster.mutations).toEqual([]);
  });

  test('an accepted DELETE alone does not prove that the namespace is deleted', async () => {
    const { cluster, runOne } = stage();
    cluster.namespace(DEMO, { active: true });
    cluster.held(CONFIG_MAPS, DEMO, 'precious', 'some.random/finalizer');
    const result = await runOne({ ...DELETE, timeout: '60s' });
    expect(result.outcome).toBe('stuck');
    expect(causes(result)).toEqual(['owner-unknown']);
  });

  test('never deletes a new namespace with the same name', async () => {
    const { cluster, runOne } = stage();
    cluster.namespace(DEMO, { active: true });
    cluster.beforeWrite = () => cluster.namespace(DEMO, { uid: 'another', active: true });
    const result = await runOne(DELETE);
    expect(result.outcome).toBe('recreated');
    expect(pins(cluster.mutations).map(({ uid }) => uid)).toEqual([`uid-of-${DEMO}`]);
  });

  test('after a lost answer the namespace is read, and the DELETE is not sent again', async () => {
    const { clock, cluster, runOne } = stage();
    cluster.namespace(DEMO, { active: true });
    cluster.beforeWrite = () => cluster.namespace(DEMO);
    cluster.answers.set(`DELETE ${PATH}`, readFailed(REFUSED));
    clock.at(30_000, () => cluster.remove(DEMO));
    expect((await runOne(DELETE)).outcome).toBe('deleted');
    expect(cluster.mutations).toHaveLength(1);
  });

  test.each([
    { what: 'for a moment', ms: 1_000 },
    { what: 'until it is gone', ms: 30_000 },
  ])('a namespace that cannot be read $what after the DELETE is waited for', async ({ ms }) => {
    const { clock, cluster, runOne } = stage();
    cluster.namespace(DEMO, { active: true });
    cluster.beforeWrite = () => {
      cluster.answers.set(`GET ${PATH}`, readFailed(BROKEN));
      clock.at(clock.elapsed + ms, () => cluster.answers.delete(`GET ${PATH}`));
    };
    clock.at(20_000, () => cluster.remove(DEMO));
    expect((await runOne(DELETE)).outcome).toBe('deleted');
    expect(cluster.mutations).toHaveLength(1);
  });

  test.each([
    { failure: FORBIDDEN },
    { failure: BROKEN },
    { failure: { ...REFUSED, kind: 'timeout' as const }, more: '; the server may still accept it' },
    {
      failure: {
        kind: 'invalid' as const,
        status: 400,
        message: '400: admission webhook "keep" denied the request: in use',
      },
    },
  ])('that is refused with "$failure.message": it still exists', async ({ failure, more = '' }) => {
    const { clock, cluster, run } = stage();
    cluster.namespace(DEMO, { active: true });
    cluster.namespace('preview-8', { active: true });
    cluster.answers.set(`DELETE ${PATH}`, readFailed(failure));
    clock.at(5_000, () => cluster.remove('preview-8'));
    const { namespaces } = await run({ ...DELETE, namespace: `${DEMO},preview-8` });
    expect(namespaces).toMatchObject([
      { outcome: 'not-terminating', verdict: 'fail', refusal: failure.message + more },
      { outcome: 'deleted', verdict: 'pass' },
    ]);
  });

  test('that failed with a passing error is sent again', async () => {
    const { clock, cluster, runOne } = stage();
    cluster.namespace(DEMO, { active: true });
    cluster.answers.set(`DELETE ${PATH}`, readFailed(BROKEN));
    const send = cluster.send.bind(cluster);
    cluster.send = (request, options) => {
      expect(options?.timeoutMs).toBeGreaterThan(30_000);
      return send(request, options);
    };
    clock.at(1_000, () => cluster.answers.delete(`DELETE ${PATH}`));
    clock.at(30_000, () => cluster.remove(DEMO));
    expect((await runOne(DELETE)).outcome).toBe('deleted');
    expect(new Set(pins(cluster.mutations).map(({ uid }) => uid))).toEqual(
      new Set([`uid-of-${DEMO}`]),
    );
  });

  test.each([
    'default',
    'kube-system',
    'kube-public',
    'kube-node-lease',
    'kube-anything',
    'openshift',
    'openshift-ingress',
    'ci',
  ])('never deletes %s, nor another namespace of that run', async (name) => {
    const { cluster, run } = stage();
    cluster.namespace(DEMO, { active: true });
    cluster.namespace(name, { active: true });
    const error = await run({ ...DELETE, namespace: `${DEMO},${name}` }).catch((one) => one);
    expect(error).toBeInstanceOf(InputError);
    expect(error.message).toContain(`namespace "${name}" is never deleted`);
    expect(cluster.mutations).toEqual([]);
  });

  test('reads a baseline first, which shows the workloads that were deleted with the namespace', async () => {
    const { clock, cluster, runOne } = stage();
    cluster.namespace(DEMO, { active: true });
    cluster.beforeWrite = () => {
      expect(cluster.requests).toContain(`LIST /apis/apps/v1/namespaces/${DEMO}/deployments`);
    };
    clock.at(30_000, () => cluster.remove(DEMO));
    expect((await runOne(DELETE)).outcome).toBe('deleted');
    expect(cluster.mutations).toHaveLength(1);
  });

  test('cancelled before the request: nothing is deleted', async () => {
    const { cluster, cancel, run } = stage();
    cluster.namespace('a', { active: true });
    cluster.namespace('b', { active: true });
    cluster.beforeWrite = () => cancel.abort();
    const result = await run({ ...DELETE, namespace: 'a,b' });
    expect(result).toMatchObject({ outcome: 'cancelled', verdict: 'fail' });
    expect(cluster.mutations).toHaveLength(1);
    expect(result.namespaces.map(({ outcome }) => outcome)).toEqual(['cancelled', 'cancelled']);
  });
});

describe('ordered deletion', () => {
  const ORDERED = { delete: 'ordered', timeout: '60s' };

  test('deletes nothing after a mistake of this program, because the order is not known', async () => {
    const { cluster, runOne } = stage();
    cluster.namespace(DEMO, { active: true });
    cluster.held(CONFIG_MAPS, DEMO, 'precious', 'some.random/finalizer');
    const list = cluster.list.bind(cluster);
    cluster.list = (path, ...rest) => {
      if (path.includes('leases')) throw new TypeError('"" cannot be part of an API path');
      return list(path, ...rest);
    };
    const result = await runOne(ORDERED);
    expect(result.refusal).toMatch(
      /^nothing was deleted, because the order is not known: this gate/,
    );
    expect(cluster.mutations).toEqual([]);
  });
  const WIDGET = `DELETE ${collectionPath(WIDGETS, DEMO)}/`;

  /** An operator in the namespace has to clean up these Widgets before it may be deleted. */
  function withOperator(count = 1): ReturnType<typeof stage> & { widget: (uid: string) => void } {
    const staged = stage();
    const { cluster } = staged;
    cluster.types = [WIDGETS];
    cluster.namespace(DEMO, { active: true });
    install(cluster, 'operator', 'example.com');
    const widget = (uid: string): void =>
      cluster.put(`${collectionPath(WIDGETS, DEMO)}/${uid}`, {
        metadata: { namespace: DEMO, name: uid, uid, finalizers: ['example.com/cleanup'] },
      });
    for (let index = 0; index < count; index++) widget(`w-${index}`);
    return { ...staged, widget };
  }

  const inside = (mutations: readonly string[]): string[] =>
    mutations.filter((line) => line.startsWith(WIDGET));

  test('leaves objects that may deploy elsewhere to a person, all of them', async () => {
    const { cluster, lines, runOne } = stage();
    cluster.namespace(DEMO, { active: true });
    const flux = { version: 'v1', namespaced: true, verbs: ['get', 'list', 'watch', 'delete'] };
    const kinds = [
      { ...flux, group: 'kustomize.toolkit.fluxcd.io', resource: 'kustomizations' },
      { ...flux, group: 'helm.toolkit.fluxcd.io', resource: 'helmreleases' },
    ].map((one, index) => ({ ...one, kind: index === 0 ? 'Kustomization' : 'HelmRelease' }));
    const [kustomizations, releases] = kinds as [ResourceType, ResourceType];
    cluster.types = [...kinds];
    install(cluster, 'kustomize-controller', kustomizations.group);
    cluster.object(kustomizations, DEMO, 'apps', { finalizers: ['finalizers.fluxcd.io'] });
    cluster.object(releases, DEMO, 'db');
    await runOne(ORDERED);
    expect(lines.join()).toContain('not done, because it may reach beyond this namespace');
    expect(cluster.mutations).toEqual([expect.stringContaining(`DELETE ${PATH} `)]);
  });

  test('deletes nothing in a new namespace with the same name', async () => {
    const { clock, cluster, runOne, widget } = withOperator();
    clock.at(3_000, () => {
      cluster.namespace(DEMO, { active: true, metadata: { uid: 'another' } });
      widget('w-new');
    });
    expect((await runOne(ORDERED)).outcome).toBe('recreated');
    expect(pins(cluster.mutations).map(({ uid }) => uid)).toEqual(['w-0', `uid-of-${DEMO}`]);
  });

  test('says who creates an object again, and announces the deletion of each once', async () => {
    const { clock, cluster, lines, runOne } = withOperator();
    const managedFields = [{ manager: 'argocd-controller' }];
    const again = { name: 'w-0', uid: 'again', finalizers: ['example.com/cleanup'], managedFields };
    clock.at(3_000, () => cluster.object(WIDGETS, DEMO, 'w-0', again));
    cluster.answers.set(WIDGET, readFailed(BROKEN));
    await runOne(ORDERED);
    const said = 'Widget w-0 was created again after its deletion, by manager argocd-controller';
    expect(lines.filter((line) => line.includes('created again'))).toEqual([`${DEMO}: ${said}`]);
    expect(lines.filter((line) => line.includes(': deleting Widget'))).toHaveLength(2);
  });

  test.each([
    { failure: FORBIDDEN, words: FORBIDDEN.message },
    { failure: BROKEN, words: /dry run of its own deletion was not accepted: 500/ },
    { failure: REFUSED, words: /was not accepted: connection refused/ },
    { failure: { ...BROKEN, kind: 'throttled' as const, status: 429 }, words: /was not accepted/ },
    {
      failure: {
        ...BROKEN,
        message: 'admission webhook "audit.example.com" does not support dry run',
      },
      words: /was not accepted: .*does not support dry run/,
    },
  ])(
    'deletes nothing inside if the dry run is answered "$failure.message"',
    async ({ failure, words }) => {
      const { cluster, runOne } = withOperator();
      cluster.answers.set(`DRY DELETE ${PATH}`, readFailed(failure));
      const { outcome, refusal } = await runOne(ORDERED);
      expect(outcome).toBe('not-terminating');
      expect(refusal).toMatch(words);
      expect(cluster.mutations).toEqual([]);
    },
  );

  test('deletes nothing inside while neither the dry run nor the namespace is answered', async () => {
    const { clock, cluster, runOne } = withOperator();
    cluster.answers.set(`DRY DELETE ${PATH}`, () => {
      cluster.answers.set(`GET ${PATH}`, readFailed(BROKEN));
      return readFailed(BROKEN);
    });
    clock.at(5_000, () => cluster.answers.delete(`GET ${PATH}`));
    const { outcome, refusal } = await runOne(ORDERED);
    expect(outcome).toBe('not-terminating');
    expect(refusal).toMatch(/dry run of its own deletion was not accepted: 500/);
    expect(cluster.mutations).toEqual([]);
  });

  test('repeats the dry run after a broken connection', async () => {
    const { cluster, runOne } = withOperator();
    cluster.answers.set(`DRY DELETE ${PATH}`, (count) =>
      count === 0 ? readFailed(REFUSED) : readOk({}),
    );
    expect((await runOne(ORDERED)).refusal).toBeUndefined();
    expect(cluster.mutations).not.toEqual([]);
  });

  test.each<[string, (staged: ReturnType<typeof withOperator>) => void, string, number]>([
    [
      'it is cancelled in the middle',
      ({ cluster, cancel }) => {
        cluster.beforeWrite = () => {
          if (cluster.mutations.length === 20) cancel.abort();
        };
      },
      'cancelled',
      20,
    ],
    [
      'a policy that admits dry runs refuses the namespace',
      ({ cluster }) => void cluster.answers.set(`DELETE ${PATH}`, readFailed(FORBIDDEN)),
      'not-terminating',
      50,
    ],
    [
      'the credentials expire during the wait',
      ({ clock, cluster }) =>
        clock.at(45_000, () => {
          for (const verb of ['GET', 'LIST', 'WATCH'])
            cluster.answers.set(verb, readFailed(UNAUTHORIZED));
          cluster.closeWatches();
        }),
      'inconclusive',
      50,
    ],
  ])('reports and announces all deletions although %s', async (_, arrange, outcome, least) => {
    const staged = withOperator(50);
    const { cluster, lines, runOne } = staged;
    arrange(staged);
    const result = await runOne(ORDERED);
    expect(result.outcome).toBe(outcome);
    const names = new Set(inside(cluster.mutations).map((line) => line.split(/[/ ]/).at(-2)));
    expect(names.size).toBeGreaterThanOrEqual(least);
    expect(new Set(result.deletions?.map(({ name }) => name))).toEqual(names);
    for (const name of names)
      expect(lines).toContain(`${DEMO}: deleting Widget ${name} (UID ${name})`);
    expect(result.timeline.map(({ event }) => event)).toContainEqual(
      expect.stringMatching(/^first 50 widgets/),
    );
  });
});

describe('nothing is changed unless an input asks for it', () => {
  test.each([
    { what: 'waiting', given: {} },
    { what: 'fail-fast', given: { 'fail-fast': 'true' } },
    { what: 'a plan', given: { 'force-finalize': 'plan', 'force-namespaces': '*' } },
    {
      what: 'a plan with everything allowed',
      given: {
        'force-finalize': 'plan',
        'force-namespaces': 'preview-*',
        'force-finalizers': '*/*',
        'force-pods': 'true',
        'force-orphans': 'accept',
      },
    },
  ])('by $what', async ({ given }) => {
    const { cluster, run } = stage();
    cluster.namespace(DEMO, { metadata: { finalizers: ['example.com/own'] } });
    cluster.held(CONFIG_MAPS, DEMO, 'precious', 'example.com/cleanup');
    const result = await run({ timeout: '60s', ...given });
    expect(result.outcome).toBe('stuck');
    expect(cluster.mutations).toEqual([]);
  });
});
