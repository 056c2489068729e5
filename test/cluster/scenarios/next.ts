import { stringAt } from '../../../src/base/json.ts';
import { byService, createWebhook, refusesUpdate, webhookRef } from '../admission.ts';
import { refOf } from '../client.ts';
import { secret } from '../objects.ts';
import type { Link, Scenario } from '../scenario.ts';
import type { OperatorBehaviour } from '../servers/operator-process.ts';
import type { World } from '../world.ts';
import { createPart, partChain } from './chains.ts';
import { type Operator, type OperatorOptions, operatorRules, rule } from './operator.ts';
import { settledWithPod } from './pods.ts';
import {
  guardedRef,
  HANGS,
  heldBy,
  KEPT,
  keeper,
  owner,
  release,
  releaseGuarded,
  type Situation,
  situation,
} from './situation.ts';

/** Two causes hold one after the other: while the first holds, no program has met the second one. */

const LOGIN = 'db-login';

const readsSecrets = (world: World): OperatorOptions => ({
  rules: [
    ...operatorRules({ group: world.domain('example.com'), kind: 'Widget' }),
    rule('', ['secrets'], ['get']),
  ],
});

/** It writes into the object first, and then reads the Secret. */
const writesThenReads: OperatorBehaviour = {
  isSlow: true,
  cleanUp: async (object, client) => {
    const path = await client.pathOf(refOf(object));
    const body = { metadata: { annotations: { step: 'unmount' } } };
    const headers = { 'content-type': 'application/merge-patch+json' };
    const written = await client.call('PATCH', path, body, headers);
    if (written.status >= 300) return stringAt(written.body, 'message');
    const secrets = `/api/v1/namespaces/${object.metadata.namespace}/secrets`;
    const found = await client.call('GET', `${secrets}/${LOGIN}`);
    return found.status === 200 ? undefined : stringAt(found.body, 'message');
  },
};

const needsLogin: Pick<Situation, 'operator' | 'spec' | 'beyondCommands'> = {
  operator: readsSecrets,
  spec: { credentials: { secretName: LOGIN } },
  beyondCommands: 'the second cause is that of the next report',
};

const thenLogin = (world: World, operator: Operator): Link => ({
  ...heldBy(world, operator),
  says: [/its controller may need Secret db-login .*, which no longer exists/],
});

export const next: readonly Scenario[] = [
  situation({
    ...needsLogin,
    id: 'next-secret',
    title: 'a dead webhook refuses the operator, and the Secret that it reads then is gone',
    behaviour: writesThenReads,
    complains: true,
    afterwards: async (world, operator) => {
      await world.create(secret(world.namespace, LOGIN));
      await createWebhook(world, {
        ...{ operations: ['UPDATE'], apiGroup: operator.group, resource: 'widgets' },
        clientConfig: byService(world.name('uninstalled'), 'guard'),
      });
      await refusesUpdate(world, guardedRef(world, operator));
    },
    expect: (world, operator) => ({
      chains: [
        [
          thenLogin(world, operator),
          owner(operator, 'owner-failing'),
          { code: 'admission-webhook-failing', subject: webhookRef(world) },
        ],
      ],
    }),
    cure: async (world, operator) => {
      await world.client.delete(webhookRef(world));
      await releaseGuarded(world, operator);
    },
  }),
  situation({
    ...needsLogin,
    id: 'next-asleep',
    title: 'the operator has no replicas, and the Secret that it reads is gone',
    operator: (world) => ({ ...readsSecrets(world), replicas: 0 }),
    behaviour: writesThenReads,
    afterwards: (world) => world.create(secret(world.namespace, LOGIN)),
    expect: (world, operator) => ({
      chains: [[thenLogin(world, operator), owner(operator, 'owner-scaled-to-zero')]],
    }),
    cure: releaseGuarded,
  }),
  situation({
    ...KEPT,
    id: 'next-behind-pod',
    title: 'a pod is held, and behind it an object whose controller has no replicas',
    operator: keeper,
    behaviour: HANGS,
    afterwards: (world) => createPart(world),
    settle: settledWithPod,
    expect: (world, operator) => ({
      chains: [
        [
          {
            ...heldBy(world, operator),
            says: [/Part db-data is held by .*, and Deployment .* is scaled to zero/],
          },
          owner(operator, 'owner-running'),
        ],
      ],
      queued: { kinds: ['Part'] },
    }),
    cure: async (world, operator) => {
      await releaseGuarded(world, operator);
      const [part] = partChain(world);
      if (part !== undefined && part.subject !== 'any') {
        await world.terminating(part.subject);
        await release(world, part.subject);
      }
    },
    beyondCommands: 'the second cause is that of the next report',
  }),
];
