import type { Remedy } from '../../model/finding.ts';
import { type TypeRef, typeName } from '../display.ts';
import { kubectl } from './commands.ts';

export { unexplainedRemedies } from './namespace.ts';

/** Objects are going away, only not fast enough. */
export function contentDeletingRemedies(input: { type: TypeRef }): Remedy[] {
  return [
    {
      text: `Give it more time: raise the timeout; ${typeName(input.type)} are still going away`,
    },
  ];
}

/**
 * A type that is being deleted itself. The CRD waits for its objects, not they for it, and PATCH of
 * their finalizers works meanwhile (apiextensions-apiserver pkg/controller/finalizer).
 */
export function crdTerminatingRemedies(input: { crd: string }): Remedy[] {
  return [
    {
      role: 'look',
      text: 'Find what holds the remaining objects of the type, in any namespace; the CRD goes with the last one',
      command: kubectl('get', input.crd, '--all-namespaces'),
    },
    {
      role: 'next',
      text: 'Delete the objects first, then their operator, then the CRD',
    },
  ];
}

/**
 * An object that cannot be decrypted or decoded breaks every list of its type. The unsafe delete needs
 * the feature AllowUnsafeMalformedObjectDeletion (KEP-3926) and the verb
 * unsafe-delete-ignore-read-errors; kubectl has no flag for it.
 */
export function storageUnreadableRemedies(input: {
  type: TypeRef | undefined;
  namespace: string;
  /** The object, where the error names it. */
  name: string | undefined;
}): Remedy[] {
  const { type, namespace, name } = input;
  const restore: Remedy = {
    text: 'Give the API server back the key that the object was encrypted with (EncryptionConfiguration), or restore the object from a backup of etcd',
  };
  if (type === undefined || name === undefined) {
    return [restore, { text: 'The log of kube-apiserver names the object that cannot be read' }];
  }
  const root = type.group === '' ? '/api' : `/apis/${type.group}`;
  const path = `${root}/${type.version}/namespaces/${namespace}/${type.resource}/${name}`;
  const body =
    '{"apiVersion":"v1","kind":"DeleteOptions","ignoreStoreReadErrorWithClusterBreakingPotential":true}';
  return [
    restore,
    {
      role: 'or',
      text: 'If its content is lost, delete it unread; the API server needs the feature gate AllowUnsafeMalformedObjectDeletion for that',
      command: `echo '${body}' | ${kubectl('delete', '--raw', path, '-f', '-')}`,
      risk: 'finalizers and owner references of the object are not looked at: whatever they protect stays behind',
    },
  ];
}
