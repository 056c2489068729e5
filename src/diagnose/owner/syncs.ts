import { type ObjectFacts, partnerKey, type ResourceType } from '../../model/snapshot.ts';
import { type Context, groupOf, textsAbout, typeName, typesOf, valueIn } from '../context.ts';
import type { Held } from './held.ts';

/** An Argo CD Application whose sync made the held object. */
export interface Sync {
  type: ResourceType;
  namespace: string;
  name: string;
}

const HOOK_FINALIZER = 'argocd.argoproj.io/hook-finalizer';
/** The annotation `app:group/kind:namespace/name`, or `namespace_app:…` (argo-cd util/argo/resource_tracking.go). */
const TRACKING_ID = 'argocd.argoproj.io/tracking-id';

/** Returns the Applications that the hooks among the held objects belong to, where Argo CD runs in these namespaces. */
export function syncsOf(context: Context, held: Held, homes: readonly string[]): Sync[] {
  if (held.finalizer !== HOOK_FINALIZER) return [];
  const type = typesOf(context).find((one) => typeName(one) === 'applications.argoproj.io');
  if (type === undefined) return [];
  const instances = held.objects.flatMap(
    ({ annotations }) => annotations[TRACKING_ID]?.split(':')[0] ?? [],
  );
  return [...new Set(instances)].flatMap((instance) => {
    const [name = '', ...place] = instance.split('_').toReversed();
    return (place.length > 0 ? place : homes).map((namespace) => ({ type, namespace, name }));
  });
}

/** Returns the running sync whose status names one of the held objects as the hook that it waits for. */
export function waitingSync(
  context: Context,
  held: Held,
  home: string,
): { sync: Sync; hook: ObjectFacts; text: string } | undefined {
  for (const sync of syncsOf(context, held, [home])) {
    const application = valueIn(context.now.partners[partnerKey({ ...sync.type, ...sync })]);
    if (application === undefined) continue;
    for (const text of textsAbout(context, application)) {
      // gitops-engine pkg/sync/sync_context.go; the words of a sync that has ended are others.
      const named = /^waiting for completion of hook (\S+)/.exec(text)?.[1];
      const hook = held.objects.find(
        ({ apiVersion, kind, name }) => `${groupOf(apiVersion)}/${kind}/${name}` === named,
      );
      if (hook !== undefined) return { sync, hook, text };
    }
  }
  return undefined;
}
