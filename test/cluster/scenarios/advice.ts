import type { JsonObject } from '../../../src/base/json.ts';
import type { KubeObject } from '../client.ts';
import type { Expectation, Scenario } from '../scenario.ts';
import { laterSecond } from '../wait-until.ts';
import { operatorOf } from './operator.ts';
import {
  guardedRef,
  HANGS,
  releaseGuarded,
  type Step,
  situation,
  writesStatus,
} from './situation.ts';

/** What a report advises, where the obvious advice would be wrong. */

const failed = (reason: string, message: string, lastTransitionTime?: string): JsonObject => ({
  conditions: [
    {
      ...{ type: 'Ready', status: 'False', reason, message },
      ...(lastTransitionTime === undefined ? {} : { lastTransitionTime }),
    },
  ],
});

/** So early that whole seconds show it to be before what comes next. */
const early =
  (step: Step): Step =>
  async (world, operator) => {
    await step(world, operator);
    await laterSecond();
  };

const EXPIRED = 'the licence has expired, nothing is reconciled';
const LONG_AGO = '2026-01-02T03:04:05Z';
/** Its reason is at its end. */
const LEASES = `finalizing in region eu-1: ${'request to the backend was logged; '.repeat(12)}deletion blocked: 2 leases are active`;

const texts: Scenario[] = [
  situation({
    id: 'failed-before',
    title: 'the status has said for long that nothing is reconciled',
    afterwards: early(writesStatus(failed('LicenseExpired', EXPIRED, LONG_AGO), 'widget-operator')),
    owner: {
      code: 'owner-running',
      says: [/before the deletion/i, /the licence has expired/],
      advises: [/^Read the log of/],
    },
  }),
  situation({
    id: 'blocked-without-date',
    title:
      'a text without a date that only makes sense during a deletion, with its reason at its end',
    behaviour: HANGS,
    afterwards: early(writesStatus(failed('LeasesActive', LEASES, LONG_AGO), 'widget-operator')),
    owner: {
      code: 'owner-running',
      says: [/ … .{1,200}deletion blocked: 2 leases are active/],
    },
  }),
  situation({
    id: 'between-deletions',
    title:
      'a status that was written after the deletion of the namespace, before that of the object',
    behaviour: HANGS,
    delete: async (world) => {
      const operator = operatorOf(world, { namespace: world.name('widget-system') });
      await world.deleteNamespace();
      await laterSecond();
      await writesStatus(
        failed('PeersUnreachable', 'cannot move 4 queues: peer b-1 does not answer'),
        operator.manager,
      )(world, operator);
      const { metadata } = await world.client.get(guardedRef(world, operator));
      if (metadata['deletionTimestamp'] !== undefined) throw new Error('it was written too late');
    },
    owner: { code: 'owner-failing', says: [/says: cannot move 4 queues/] },
  }),
];

/** What the outside has not got any more cannot leak. */
const outside = situation({
  id: 'gone-outside',
  title: 'the cloud does not know any more what the controller wants to delete',
  behaviour: { cleanUp: () => 'api error NoSuchHostedZone, status code 404: no such zone' },
  complains: true,
  owner: 'owner-failing',
  expect: () => ({ also: risks(/nothing is leaked/) }),
});

const risks =
  (words: RegExp): NonNullable<Expectation['also']> =>
  ({ namespace }) => {
    const told = namespace.findings.flatMap(({ remedies }) =>
      remedies.map(({ risk = '' }) => risk),
    );
    if (!told.some((text) => words.test(text))) throw new Error(`risks only ${told.join(' | ')}`);
  };

interface Product {
  group: string;
  kind: string;
  version: string;
  name: string;
  finalizer: string;
  /** What its controller obeys, as JSON in the object. */
  keeps: string;
}

const PRODUCTS: Record<string, Product> = {
  ack: {
    ...{ group: 's3.services.k8s.aws', version: 'v1alpha1', kind: 'Bucket' },
    ...{ name: 'ack-s3-controller', finalizer: 'finalizers.s3.services.k8s.aws/Bucket' },
    keeps: '"services.k8s.aws/deletion-policy":"retain"',
  },
  crossplane: {
    ...{ group: 'rds.aws.m.upbound.io', version: 'v1beta1', kind: 'Instance' },
    ...{ name: 'provider-aws-rds', finalizer: 'finalizer.managedresource.crossplane.io' },
    keeps: '"managementPolicies":["Observe"',
  },
  carvel: {
    ...{ group: 'kappctrl.k14s.io', version: 'v1alpha1', kind: 'App' },
    ...{ name: 'kapp-controller', finalizer: 'finalizers.kapp-ctrl.k14s.io/delete' },
    keeps: '"noopDelete":true',
  },
};

/** Its clean-up is refused until the object is to be kept: then the printed command frees the namespace. */
const escapes = Object.entries(PRODUCTS).map(([id, { keeps, ...product }]) =>
  situation({
    id: `escape-${id}`,
    title: `the controller of ${product.kind} objects of ${product.group} is refused outside, and may keep them`,
    own: true, // the product's own API group
    operator: { ...product, ownGroup: false, namespace: `${product.name}-system` },
    behaviour: {
      cleanUp: (object: KubeObject) =>
        JSON.stringify(object).includes(keeps) ? undefined : 'AccessDenied: not authorized',
    },
    complains: true,
    owner: 'owner-failing',
    expect: () => ({ also: escapesFirst }),
    cure: releaseGuarded,
  }),
);

const escapesFirst: NonNullable<Expectation['also']> = async (seen) => {
  const all = seen.namespace.findings.flatMap(({ remedies }) => remedies.map(({ text }) => text));
  const places = [/ without what it stands for$/, /^Remove this one finalizer/].map((words) =>
    all.findIndex((text) => words.test(text)),
  );
  const [product = -1, removal = -1] = places;
  if (product < 0 || removal < product) throw new Error(`advises ${all.join(' | ')}`);
};

export const advice = [...texts, outside, ...escapes];
