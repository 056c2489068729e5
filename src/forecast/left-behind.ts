import type { LeftBehind } from '../model/result.ts';
import type { Pointer } from '../model/snapshot.ts';

/**
 * What outside of the namespace still points into it, the worst first. `isGone`: it went; otherwise it is what
 * its deletion would leave.
 */
export function leftBehind(
  namespace: string,
  pointers: readonly Pointer[],
  isGone: boolean,
): LeftBehind[] {
  const seen = new Set<string>();
  return pointers
    .filter((pointer) => pointer.namespace === namespace && staysBehind(pointer, isGone))
    .toSorted((a, b) => Number(b.breaksOthers) - Number(a.breaksOthers))
    .flatMap(({ apiVersion, kind, name, field, state, breaksOthers }) => {
      const key = `${kind} ${name}`;
      if (seen.has(key)) return [];
      seen.add(key);
      const meaning = meaningOf(kind, breaksOthers);
      const why = `${field} points to it${state === '' ? '' : ` (${state})`}${meaning === '' ? '' : `: ${meaning}`}`;
      return [{ apiVersion, kind, name, why, breaksOthers }];
    });
}

/** A volume that is deleted with its claim goes by itself, unless that has failed. */
function staysBehind({ kind, state }: Pointer, isGone: boolean): boolean {
  const goesToo = /policy Delete$/.test(state) && !state.startsWith('Failed');
  return isGone || !goesToo || !['PersistentVolume', 'VolumeSnapshotContent'].includes(kind);
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
      return breaksOthers ? 'objects in another version can be neither read nor deleted' : '';
    case 'ClusterRoleBinding':
      return 'whoever makes a namespace and an account of these names gets its rights';
    default:
      return breaksOthers ? 'requests that it matches are refused, in the whole cluster' : '';
  }
}
