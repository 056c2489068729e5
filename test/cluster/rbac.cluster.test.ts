import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { JsonObject } from '../../src/base/json.ts';
import type { KubernetesApi } from '../../src/kubernetes/api.ts';
import type { NamespaceResult } from '../../src/model/result.ts';
import { foreignKubeconfig, onPlane, wantedVersion } from './clusters.ts';
import { type ControlPlane, startControlPlane } from './control-plane.ts';
import {
  bind,
  connectAs,
  createAccount,
  manifest,
  prepareIdentities,
  runOn,
} from './force-world.ts';
import { configMap } from './objects.ts';
import { waitUntil } from './wait-until.ts';
import { World } from './world.ts';

/** The name that rbac/forecast.yaml has in its marked line. */
const ACCOUNT = 'forecast';
const NAMESPACE = 'preview';

describe.skipIf(foreignKubeconfig() !== undefined)('rbac/forecast.yaml', () => {
  let plane: ControlPlane;
  let api: KubernetesApi;

  beforeAll(async () => {
    plane = await startControlPlane({ version: wantedVersion() });
    await prepareIdentities(plane);
    const { admin } = plane;
    for (const object of await manifest('forecast')) await admin.apply(object);
    await createAccount(admin, ACCOUNT, ['forecast', 'reader']);
    await createAccount(admin, 'admin', []);
    await bind(admin, 'admin', 'cluster-admin');
    await admin.create({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: NAMESPACE } });
    await admin.create(configMap(NAMESPACE, 'settings'));
    api = await connectAs(plane, ACCOUNT);
  });

  afterAll(async () => {
    await api?.close();
    await plane?.stop();
  });

  test.each([
    ['an object', `/api/v1/namespaces/${NAMESPACE}/configmaps/settings`],
    ['the namespace', `/api/v1/namespaces/${NAMESPACE}`],
  ])('lets %s be deleted as a dry run, and not for real', async (_, path) => {
    const remove = (dryRun: boolean) => api.send({ method: 'DELETE', path, dryRun });
    // Policies take effect some seconds after they were made; until then a dry run shows nothing.
    await waitUntil('the policy is in force', async () => {
      const probe = `/api/v1/namespaces/${NAMESPACE}/configmaps/not-there`;
      await plane.admin.apply(configMap(NAMESPACE, 'not-there'));
      return !(await api.send({ method: 'DELETE', path: probe })).ok;
    });
    expect(await remove(true)).toMatchObject({ ok: true });
    expect(await remove(false)).toMatchObject({
      ok: false,
      failure: { message: expect.stringContaining('the forecast deletes nothing') },
    });
  });

  test('a policy whose conditions cannot be evaluated is named, with what would answer it', async () => {
    const kind = 'ValidatingAdmissionPolicy';
    const apiVersion = 'admissionregistration.k8s.io/v1';
    const [, policy, binding] = (await manifest('forecast', (text) =>
      text
        .replace(
          /expression: request\.userInfo.*/,
          "expression: request.userInfo.username.matches('nobody')",
        )
        .replaceAll('namespace-teardown-gate-forecast', 'undecided'),
    )) as [JsonObject, JsonObject, JsonObject];
    await plane.admin.apply(policy);
    await plane.admin.apply(binding);
    try {
      const result = await forecast('reader', 'undecided');
      expect(result?.outcome).toBe('inconclusive');
      expect(result?.diagnosis?.notInspected).toContainEqual({
        what: 'whether admission lets configmaps be deleted',
        reason: expect.stringMatching(
          /; asked is policy undecided \(binding undecided\): rbac\/forecast\.yaml lets/,
        ),
      });
    } finally {
      await plane.admin.delete({ apiVersion, kind: `${kind}Binding`, name: 'undecided' });
      await plane.admin.delete({ apiVersion, kind, name: 'undecided' });
    }
  });

  test.each([
    ['the identity that the policy is about', ACCOUNT],
    ['an identity that may only read', 'reader'],
    ['an administrator', undefined],
  ])('leaves no question open in the forecast of an empty namespace for %s', async (_, account) => {
    for (const object of await manifest('guard')) await plane.admin.apply(object);
    const result = await forecast(account ?? 'admin', `empty-${account ?? 'admin'}`);
    expect(result?.diagnosis?.notInspected).toEqual([]);
    expect(result?.outcome).toBe('clear');
  });

  /** Of a new namespace, which has what Kubernetes puts into each. */
  async function forecast(account: string, name: string): Promise<NamespaceResult | undefined> {
    await new World({ ...onPlane(plane), namespace: name }).createNamespace();
    const gate = await connectAs(plane, account);
    return runOn(gate, { namespace: name, forecast: 'true' }).finally(() => gate.close());
  }
});
