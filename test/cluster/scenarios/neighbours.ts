import { arrayAt, type JsonObject, valueAt } from '../../../src/base/json.ts';
import { byService, createWebhook, webhookRef } from '../admission.ts';
import { customType, service, typeRef } from '../objects.ts';
import type { Scenario } from '../scenario.ts';
import { waitUntil } from '../wait-until.ts';
import { uninstall } from './operator.ts';
import { guardedRef, nobodyLeft, owner, scaleUp, situation } from './situation.ts';

const chains: Scenario[] = [
  situation({
    id: 'invalid-gone',
    identity: 'teardown-force', // only who may change the object can try
    title:
      'the operator is uninstalled, and its type has got a field without which nothing is valid',
    operator: { name: 'sizing-operator', namespace: 'sizing-system' }, // a namesake elsewhere may be the owner
    afterwards: async (world, operator) => {
      await uninstall(world, operator);
      const { group, kind } = operator;
      const { spec } = structuredClone(customType({ group, kind }));
      const [version] = arrayAt(spec, 'versions') as [JsonObject];
      const schema = valueAt(version, 'schema', 'openAPIV3Schema') as JsonObject;
      // What has not changed is not validated again (CRD validation ratcheting), but for the object as a whole.
      schema['required'] = ['size'];
      (schema['properties'] as JsonObject)['size'] = { type: 'integer' };
      await world.client.patch(typeRef(group, kind), { spec: { versions: [version] } });
      const path = `${await world.client.pathOf(guardedRef(world, operator))}?dryRun=All`;
      await waitUntil('the type to refuse', async () => {
        const patch = { metadata: { annotations: { probe: 'x' } } };
        const type = { 'content-type': 'application/merge-patch+json' };
        return (await world.client.call('PATCH', path, patch, type)).status === 422;
      });
    },
    owner: (_, operator) => [{ ...nobodyLeft(operator), advises: [/Make Widget db valid/] }],
    cure: async (world, operator) => {
      await world.client.patch(guardedRef(world, operator), {
        metadata: { finalizers: null },
        size: 1,
      });
    },
    mayChange: (_, { group, kind }) => [typeRef(group, kind)],
    beyondCommands: 'only a person knows what the field should say',
  }),
];

const rights: Scenario[] = [
  situation({
    id: 'own-webhook-on-pods',
    title: 'the operator has 0 replicas, and its own dead webhook refuses every pod',
    operator: { replicas: 0 },
    afterwards: async (world, { namespace, name }) => {
      await world.create(service(namespace, name, { selector: { app: name } }));
      await createWebhook(world, {
        operations: ['CREATE'],
        resource: 'pods',
        clientConfig: byService(namespace, name),
        sees: namespace,
        timeoutSeconds: 1,
      });
    },
    expect: (world, operator) => ({
      chains: 'any',
      rootCauses: [
        owner(operator, 'owner-scaled-to-zero'),
        { code: 'admission-webhook-failing', subject: webhookRef(world) },
      ],
    }),
    cure: async (world, operator) => {
      await world.client.delete(webhookRef(world));
      await scaleUp(world, operator);
    },
  }),
];

export const neighbours = [...chains, ...rights];
