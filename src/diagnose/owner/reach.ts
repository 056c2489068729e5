import type { ResourceType } from '../../model/snapshot.ts';
import { type Context, detailOf } from '../context.ts';
import type { Held } from './held.ts';

// Objects whose deletion deletes what they deployed, in whatever namespace or cluster.

/** GitOps tools apply deleted objects again, so that their own have to be deleted first: those of earlier kinds create later ones. */
const RECREATING =
  /(?:\.|^)(?:toolkit\.fluxcd\.io|argoproj\.io|fleet\.cattle\.io|kappctrl\.k14s\.io)$/;
const KINDS = 'ApplicationSet Application GitRepo Bundle Kustomization HelmRelease App'.split(' ');

export function isGitOps(type: ResourceType): boolean {
  return rankOf(type) < KINDS.length;
}

/** Returns the position of a type among the GitOps kinds. All other types come last. */
export function rankOf({ group, kind }: ResourceType): number {
  return RECREATING.test(group) && KINDS.includes(kind) ? KINDS.indexOf(kind) : KINDS.length;
}

/** A setting with the namespace in which a controller deploys something, as `spec.targetNamespace` of a k3s HelmChart. */
const TARGET =
  /^spec\.(?:(?:target|destination|release|install)\w*namespace|(?:target|destination|forProvider)\.namespace)=(.+)$/i;

/**
 * Reports whether the controller may delete objects outside of the namespace when it cleans up: those of a GitOps tool,
 * or what the object has a manifest or a target namespace for.
 */
export function reachesOut(
  context: Context,
  { type, objects }: Pick<Held, 'type' | 'objects'>,
): boolean {
  return (
    isGitOps(type) ||
    objects.some((object) => {
      const { references = [], settings = [] } = detailOf(context, object) ?? {};
      const targets = settings.flatMap((one) => TARGET.exec(one)?.[1] ?? []);
      const makes = references.flatMap(({ isMade, namespace }) => (isMade ? [namespace] : []));
      return [...targets, ...makes].some((place) => place !== context.now.namespace.name);
    })
  );
}

/** The risk of every advice that lets such a controller clean up. */
export const REACHING_RISK =
  'the controller then deletes what it deployed for them, also outside of this namespace';
