import type { Clock } from './clock.ts';
import { parseConditions } from './diagnose/conditions.ts';
import { formatClock, formatDuration } from './duration.ts';
import { stringAt, stringsAt } from './json.ts';
import type { KubernetesApi } from './kubernetes/api.ts';
import { collectionPath } from './kubernetes/paths.ts';
import type { NamespaceFacts } from './observe/snapshot.ts';
import type { Progress } from './progress.ts';
import type { Follower } from './wait.ts';

/** After this long without news people ask whether the gate still lives; then ever more seldom. */
const QUIET_MS = 60_000;
const MAX_GLANCED_OBJECTS = 20;

export interface GlanceDeps {
  api: KubernetesApi;
  clock: Clock;
}

/**
 * Says in the log what is left when nothing has changed for a while. Costs four requests at most, so
 * that with two polls a minute of waiting costs six. It is no diagnosis, and nothing is decided by it.
 * Ends with the follower; never rejects.
 */
export async function glanceWhenQuiet(
  follower: Follower,
  progress: Progress,
  nextLookAt: number,
  deps: GlanceDeps,
): Promise<void> {
  for (let quietMs = QUIET_MS; ; ) {
    const newsAt = progress.newsAt;
    await deps.clock.sleep(Math.max(0, newsAt + quietMs - deps.clock.now()), follower.over);
    if (follower.over.aborted) return;
    if (progress.newsAt !== newsAt) {
      quietMs = QUIET_MS;
      continue;
    }
    const left = await glance(follower.last, deps, follower.over);
    if (follower.over.aborted) return;
    const quiet = formatDuration(deps.clock.now() - newsAt);
    const next =
      nextLookAt > deps.clock.now()
        ? `; next look at ${formatClock(nextLookAt - progress.startedAt)}`
        : '';
    progress.note(`no change for ${quiet}${left === undefined ? '' : `: ${left}`}${next}`);
    quietMs *= 2;
  }
}

/** Pods first, since nothing else goes before them; then what the namespace's conditions name. */
async function glance(
  namespace: NamespaceFacts,
  deps: GlanceDeps,
  signal: AbortSignal,
): Promise<string | undefined> {
  const place = `/api/v1/namespaces/${encodeURIComponent(namespace.name)}`;
  const pods = await heldIn(`${place}/pods`, 'Pod', deps, signal);
  if (pods !== undefined) return pods;
  const { remaining } = parseConditions(namespace.conditions);
  if (remaining.length === 0) return undefined;
  const discovery = await deps.api.discover({ signal });
  if (!discovery.ok) return undefined;
  const type = remaining
    .map(({ group, resource }) =>
      discovery.value.types.find((entry) => entry.group === group && entry.resource === resource),
    )
    .find((found) => found !== undefined);
  if (type === undefined) return undefined;
  return heldIn(collectionPath(type, namespace.name), type.kind, deps, signal);
}

/** The first object of the collection that is on its way out, and what holds it. */
async function heldIn(
  path: string,
  kind: string,
  { api }: GlanceDeps,
  signal: AbortSignal,
): Promise<string | undefined> {
  let text: string | undefined;
  await api.list(path, {
    signal,
    metadataOnly: true,
    limit: MAX_GLANCED_OBJECTS,
    maxItems: MAX_GLANCED_OBJECTS,
    onItem: (item) => {
      if (stringAt(item, 'metadata', 'deletionTimestamp') === undefined) return;
      const name = stringAt(item, 'metadata', 'name') ?? '';
      const finalizers = stringsAt(item, 'metadata', 'finalizers');
      text ??=
        finalizers.length === 0
          ? `${kind} ${name} is still terminating`
          : `${kind} ${name} is held by ${finalizers.join(', ')}`;
    },
  });
  return text;
}
