import type { LeftBehind } from '../model/result.ts';
import type { Claim, Pointer } from '../model/snapshot.ts';

/** What is known of a namespace whose leftovers are asked for. */
export interface Left {
  name: string;
  /** ISO 8601. */
  createdAt: string | undefined;
  /** What is known to be in it, or to have been. */
  claims: readonly Claim[];
  /** `replaced`: another namespace has its name, and what points to the name is about that one. */
  fate: 'expected' | 'gone' | 'replaced';
}

/** What outside of the namespace still points into it, or would if it were deleted; the worst first. */
export function leftBehind(namespace: Left, pointers: readonly Pointer[]): LeftBehind[] {
  const seen = new Set<string>();
  return pointers
    .filter((pointer) => pointer.namespace === namespace.name && staysBehind(pointer, namespace))
    .toSorted((a, b) => Number(b.breaksOthers) - Number(a.breaksOthers))
    .flatMap(({ apiVersion, kind, name, how, state, breaksOthers, isGoing }) => {
      const key = `${kind} ${name}`;
      if (seen.has(key)) return [];
      seen.add(key);
      const meaning = isGoing
        ? 'it should go by itself, and is still there'
        : meaningOf(kind, breaksOthers);
      const why = `${how}${state === '' ? '' : ` (${state})`}${meaning === '' ? '' : `: ${meaning}`}`;
      return [{ apiVersion, kind, name, why, breaksOthers, isGoing }];
    });
}

function staysBehind(
  { claim, isGoing, released }: Pointer,
  { claims, createdAt, fate }: Left,
): boolean {
  const isOlder = Date.parse(released?.at ?? '') < Date.parse(createdAt ?? '');
  const isAnothers =
    Boolean(claim?.uid) &&
    claims.some(({ name, uid }) => name === claim?.name && uid !== claim.uid);
  // A claim of an earlier namespace of the same name has left it, or one that was made again.
  if (isOlder || isAnothers) return false;
  return fate === 'gone' || (fate === 'replaced' ? released !== undefined : !isGoing);
}

function meaningOf(kind: string, breaksOthers: boolean): string {
  switch (kind) {
    case 'PersistentVolume':
      return 'the volume, and what is on it, still exist';
    case 'VolumeAttachment':
      return 'the volume is still attached to its node';
    case 'VolumeSnapshotContent':
      return 'the snapshot in the storage still exists';
    case 'APIService':
      return 'while it does not answer, no namespace of the cluster can be finished';
    case 'CustomResourceDefinition':
      return breaksOthers
        ? 'without it, objects in another version can be neither read nor deleted'
        : '';
    case 'ClusterRoleBinding':
      return 'whoever makes a namespace and an account of these names gets its rights';
    default:
      return breaksOthers ? 'requests that it matches are refused, in the whole cluster' : '';
  }
}
