import type { JsonObject } from '../../../src/base/json.ts';
import { configMap, customObject, customType, secret, serviceAccount } from '../objects.ts';
import type { Link, Scenario } from '../scenario.ts';
import type { World } from '../world.ts';
import { objectFinalizer, ref } from './links.ts';
import { createGuarded, install, type Operator, operatorOf, runPods } from './operator.ts';
import { owner, settledByFinalizer } from './situation.ts';

/**
 * Controllers of well-known products, which run as their charts install them, and objects of theirs that name what
 * their clean-up reads or creates in the namespace.
 */
interface Product {
  namespace: string;
  name: string;
  group: string;
  version: string;
  kind: string;
  finalizer: string;
  /** The object by its name. */
  object: string;
  spec?: JsonObject;
  annotations?: Record<string, string>;
  /** What its owner may need, as the report says it. */
  needs: RegExp;
}

const STORES = 'external-secrets.io';

const products = ({ namespace }: World): readonly Product[] => [
  {
    ...{ namespace: 'external-secrets', name: 'external-secrets' },
    ...{ group: STORES, version: 'v1alpha1', kind: 'PushSecret', object: 'password' },
    finalizer: 'pushsecret.externalsecrets.io/finalizer',
    needs: /Secret vault-token \(which ClusterSecretStore vault names\)/,
    spec: {
      deletionPolicy: 'Delete',
      secretStoreRefs: [{ kind: 'ClusterSecretStore', name: 'vault' }],
    },
  },
  {
    ...{
      namespace: 'azureserviceoperator-system',
      name: 'azureserviceoperator-controller-manager',
    },
    ...{ group: 'storage.azure.com', version: 'v1', kind: 'StorageAccount', object: 'files' },
    finalizer: 'serviceoperator.azure.com/finalizer',
    needs: /Secret azure-login \(metadata\.annotations/,
    annotations: { 'serviceoperator.azure.com/credential-from': 'azure-login' },
  },
  {
    ...{ namespace: 'argocd', name: 'argocd-application-controller' },
    ...{ group: 'argoproj.io', version: 'v1alpha1', kind: 'Application', object: 'shop' },
    finalizer: 'post-delete-finalizer.argocd.argoproj.io',
    needs: /to create a Job/,
    spec: { destination: { namespace, server: 'https://kubernetes.default.svc' } },
  },
  {
    ...{ namespace: 'flux-system', name: 'tofu-controller' },
    ...{ group: 'infra.contrib.fluxcd.io', version: 'v1alpha2', kind: 'Terraform' },
    object: 'network',
    finalizer: 'finalizers.tf.contrib.fluxcd.io',
    needs: /Secret variables /,
    spec: { serviceAccountName: 'default', varsFrom: [{ kind: 'Secret', name: 'variables' }] },
  },
  {
    ...{ namespace: 'arc-systems', name: 'arc-gha-rs-controller' },
    ...{ group: 'actions.github.com', version: 'v1alpha1', kind: 'AutoscalingRunnerSet' },
    object: 'runners',
    finalizer: 'autoscalingrunnerset.actions.github.com/finalizer',
    needs: /may need Secret github-login \(spec\.githubConfigSecret\)/,
    spec: { githubConfigSecret: 'github-login', runnerScaleSetName: 'runners' },
  },
];

const operatorFor = (world: World, { name, namespace, ...one }: Product): Operator =>
  operatorOf(world, { ...one, name, namespace, ownGroup: false, manager: name });

async function createProduct(world: World, product: Product): Promise<void> {
  const { namespace, name, group, version, kind, finalizer, object, spec, annotations } = product;
  await world.ensureNamespace(namespace);
  const operator = await install(world, {
    ...{ namespace, name, group, version, kind, finalizer, ownGroup: false, scope: 'cluster' },
    manager: name,
  });
  await runPods(world, operator);
  await createGuarded(world, operator, object, world.namespace, spec);
  if (annotations !== undefined) {
    const subject = ref(`${group}/${version}`, kind, world.namespace, object);
    await world.client.patch(subject, { metadata: { annotations } });
  }
}

const knownNeeds: Scenario = {
  id: 'known-needs',
  title: 'controllers of five products run, and objects of theirs need what is deleted with them',
  own: true, // the products' own API groups
  setUp: async (world) => {
    const { namespace } = world;
    await world.createNamespace();
    await world.createType(
      customType({ group: STORES, kind: 'ClusterSecretStore', versions: ['v1'], scope: 'Cluster' }),
    );
    await world.create({
      ...customObject(`${STORES}/v1`, 'ClusterSecretStore', '', 'vault'),
      spec: {
        provider: { vault: { auth: { tokenSecretRef: { name: 'vault-token', namespace } } } },
      },
    });
    for (const product of products(world)) await createProduct(world, product);
    const names = ['vault-token', 'azure-login', 'aso-credential', 'variables', 'github-login'];
    await world.createAll([
      ...names.map((name) => secret(namespace, name)),
      secret(namespace, 'tfstate-default-network'),
      serviceAccount(namespace, 'tf-runner'),
      // Nobody reads these.
      secret(namespace, 'tfstate-default-other'),
      secret(namespace, 'files-keys'),
      configMap(namespace, 'network'),
    ]);
  },
  settle: settledByFinalizer,
  expect: (world) => ({
    outcome: 'stuck',
    chains: products(world).map((product): Link[] => {
      const operator = operatorFor(world, product);
      const subject = ref(
        `${product.group}/${product.version}`,
        product.kind,
        world.namespace,
        product.object,
      );
      return [
        objectFinalizer(subject, product.finalizer),
        owner(operator, 'owner-failing', { says: [product.needs] }),
      ];
    }),
  }),
  beyondCommands: 'the stand-ins of the controllers clean up nothing',
};

export const knownProducts = [knownNeeds];
