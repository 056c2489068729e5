import type { Remedy } from '../../model/finding.ts';
import type { ObjectFacts } from '../../model/snapshot.ts';
import { type CatalogueEntry, lookUpFinalizer } from '../catalogue.ts';
import { type TypeRef, typeName } from '../display.ts';
import { forceCommand, kubectl, named, patchCommand, removalPatch } from './commands.ts';

/** An object, and one of its finalizers. */
export interface HeldObject {
  object: Pick<ObjectFacts, 'kind' | 'namespace' | 'name' | 'uid'>;
  type: TypeRef;
  finalizer: string;
  /** Where it stands in `metadata.finalizers`. */
  index: number;
  /** How many objects are held in the same way. */
  count: number;
}

/** An object that is terminating and held by this finalizer. `isRefused`: nobody could remove it now. */
export function objectFinalizerRemedies(held: HeldObject, isRefused = false): Remedy[] {
  const known = knownRemedies(lookUpHeld(held));
  return isRefused ? known : [...known, ...removeFinalizerRemedies(held)];
}

/** The last resort on an object; also ends the remedies of a finalizer's owner. */
export function removeFinalizerRemedies(held: HeldObject): Remedy[] {
  const { object, type, finalizer, count } = held;
  const target = [...named(typeName(type), object.name), '-n', object.namespace];
  const risk = leakText(lookUpHeld(held));
  const one: Remedy = {
    role: 'or',
    text:
      count > 1
        ? `Remove this one finalizer, here from the first of ${count} objects`
        : 'Remove this one finalizer',
    command: patchCommand(target, removalPatch({ uid: object.uid, finalizer, index: held.index })),
    risk,
  };
  const command = count > 1 ? forceCommand(object.namespace, finalizer) : undefined;
  if (command === undefined) return [one];
  return [one, { role: 'or', text: `Let this gate remove it from all ${count}`, command, risk }];
}

/** The order of teardown that avoids the circle. */
export function deleteFirstRemedy(
  { object, type }: Pick<HeldObject, 'object' | 'type'>,
  controller: string,
): Remedy {
  return {
    role: 'next',
    text: `Delete the ${object.kind} objects, and let that finish, before ${controller} and the namespace`,
    command: kubectl('delete', typeName(type), '--all', '-n', object.namespace, '--wait'),
  };
}

/** What removing the finalizer by hand costs. */
export function leakText(known: CatalogueEntry | undefined): string {
  return known === undefined
    ? 'what its controller would have cleaned up stays behind; nobody in the cluster can say what that is'
    : withoutPeriod(known.leakIfRemoved);
}

/** What is known to bring the owner of the finalizer to remove it. */
export function knownRemedies(known: CatalogueEntry | undefined): Remedy[] {
  return known === undefined ? [] : [{ text: withoutPeriod(known.remedy) }];
}

/** Entries of the catalogue are sentences; remedies are items of a list. */
function withoutPeriod(sentence: string): string {
  return sentence.replace(/\.$/, '');
}

function lookUpHeld({ object, type, finalizer }: HeldObject): CatalogueEntry | undefined {
  return lookUpFinalizer(finalizer, { kind: object.kind, group: type.group });
}
