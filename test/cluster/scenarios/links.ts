import type { FindingCode } from '../../../src/model/finding.ts';
import type { Ref } from '../client.ts';
import type { Expectation, Link } from '../scenario.ts';
import type { World } from '../world.ts';

/** Short words for the links that chains are made of. */

export const ref = (apiVersion: string, kind: string, namespace: string, name: string): Ref => ({
  apiVersion,
  kind,
  namespace,
  name,
});
export const configMapRef = (namespace: string, name: string): Ref =>
  ref('v1', 'ConfigMap', namespace, name);
export const podRef = (namespace: string, name: string): Ref => ref('v1', 'Pod', namespace, name);
export const deploymentRef = (namespace: string, name: string): Ref =>
  ref('apps/v1', 'Deployment', namespace, name);

/** A resource type; `name` as kubectl names it. */
export const resourceType = (apiVersion: string, name: string): Ref => ({
  apiVersion,
  kind: 'APIResource',
  name,
});

export type Words = Pick<Link, 'says' | 'advises' | 'certainty'>;

/** Returns what makes links of this code, which are about a finalizer. */
const about =
  (code: FindingCode) =>
  (subject: Ref, finalizer: string, words: Words = {}): Link => ({
    ...{ code, subject, finalizer },
    ...words,
  });
export const objectFinalizer = about('object-finalizer');
export const namespaceFinalizer = about('namespace-finalizer');
export const specFinalizer = about('namespace-spec-finalizer');
export const ownerUnknown = about('owner-unknown');
export const ownerMissing = about('owner-missing');

/** It hangs, and these chains, each from what holds it to a root cause, are all that is found. */
export const stuck = (...chains: Link[][]): Expectation => ({ outcome: 'stuck', chains });

/** Waits until these words are in its status. */
export const statusSays = (world: World, of: Ref, what: string, words: string): Promise<unknown> =>
  world.client.waitFor(of, what, (found) =>
    JSON.stringify(found?.['status'] ?? '').includes(words),
  );

/** Condition types as the namespace controller writes them. */
export const DISCOVERY = 'NamespaceDeletionDiscoveryFailure';
export const CONTENT_FAILURE = 'NamespaceDeletionContentFailure';
export const REMAINING = 'NamespaceContentRemaining';
export const FINALIZERS = 'NamespaceFinalizersRemaining';
