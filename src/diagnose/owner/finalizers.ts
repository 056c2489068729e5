import { KUBERNETES_FINALIZER, NAMESPACE_TYPE } from '../../model/facts/metadata.ts';
import type { ObjectFacts, ObjectGroup, TypeContent } from '../../model/snapshot.ts';
import {
  type Context,
  foldSubjects,
  isForeseen,
  isInside,
  namespaceSubject,
  type RuleResult,
  subjectOf,
} from '../context.ts';
import { finalizerSet, shrinkingTypes } from '../movement.ts';
import { isClaimInUse } from '../rules/pods.ts';
import { namespacesAwaited, objectsAwaited, PROTECTION } from '../waits.ts';
import { finalizersOfObject, type Held, writerOf } from './held.ts';
import { ownerResults } from './owner.ts';

/**
 * Returns everything that a finalizer holds: the Namespace itself, objects in it, and objects outside for which
 * they wait.
 */
export function everythingHeld(context: Context): Held[] {
  const inside = heldObjects(context);
  const outside = heldOutside(context, inside);
  return [...heldNamespace(context), ...inside, ...outside];
}

function heldNamespace({ now: { namespace } }: Context): Held[] {
  const base = {
    subject: namespaceSubject(namespace.name),
    type: NAMESPACE_TYPE,
    objects: [],
    count: 1,
    since: namespace.deletionTimestamp ?? '',
  };
  const own = namespace.finalizers.map((finalizer) => ({
    ...base,
    finalizer,
    writers: namespace.writers,
  }));
  const spec = namespace.specFinalizers
    .filter((finalizer) => finalizer !== KUBERNETES_FINALIZER)
    .map((finalizer) => ({ ...base, finalizer, writers: [], isInSpec: true }));
  return [...own, ...spec];
}

/**
 * Returns every finalizer that holds terminating objects, unless these are being deleted one by one. Protected objects
 * come last, because they wait for the others.
 */
export function heldObjects(context: Context): Held[] {
  const moving = shrinkingSets(context);
  const all = context.now.content.flatMap((content) => {
    if (!content.read.ok) return []; // listed under "not inspected"
    return content.read.value.terminating
      .filter(({ finalizers }) => !moving.get(content)?.has(finalizerSet(finalizers)))
      .flatMap((group) =>
        [...new Set(group.finalizers)].flatMap((name) => heldIn(context, content, group, name)),
      );
  });
  const isProtected = ({ finalizer }: Held): boolean => PROTECTION.test(finalizer);
  return [...all.filter((held) => !isProtected(held)), ...all.filter(isProtected)];
}

function heldIn(
  context: Context,
  { type }: TypeContent,
  group: ObjectGroup,
  finalizer: string,
): Held[] {
  // Claims that a pod still uses have a finding of their own.
  const objects = group.examples.filter((object) => !isClaimInUse(context, object, finalizer));
  const [first] = objects;
  if (first === undefined) return [];
  const { since, count } = group;
  return [
    {
      finalizer,
      subject: subjectOf(first),
      type,
      objects,
      count: count - (group.examples.length - objects.length),
      since,
      writers: first.writers,
    },
  ];
}

/** Returns sets of objects that are being deleted one by one: they are "content-deleting", not held. */
function shrinkingSets({ before, now }: Context): Map<TypeContent, Set<string>> {
  const sets = new Map<TypeContent, Set<string>>();
  if (before === undefined) return sets;
  for (const { content, finalizers } of shrinkingTypes(before, now)) {
    const known = sets.get(content) ?? new Set();
    sets.set(content, known.add(finalizerSet(finalizers)));
  }
  return sets;
}

/**
 * Returns partners and children of held objects outside of the namespace, and Nodes of its pods that are
 * held in turn.
 */
function heldOutside(context: Context, inside: readonly Held[]): Held[] {
  const found = new Map<string, ObjectFacts>();
  const visit = (held: Held): void => {
    for (const object of objectsAwaited(context, held)) {
      if (found.has(object.uid)) continue;
      found.set(object.uid, object);
      for (const next of finalizersOfObject(context, object)) visit(next);
    }
  };
  for (const held of inside) visit(held);
  return [...found.values()]
    .filter(({ namespace }) => !isInside(context, namespace))
    .flatMap((object) => finalizersOfObject(context, object));
}

/** Finds what finalizers hold, and their owners. */
export function heldByFinalizers(context: Context): RuleResult[] {
  return everythingHeld(context).flatMap((held) =>
    held.objects.length === 0
      ? namespaceFinalizerResults(context, held)
      : objectResults(context, held),
  );
}

/** Returns one finding per finalizer and cause; objects without deletionTimestamp are queued and never held. */
function objectResults(context: Context, held: Held): RuleResult[] {
  const { finalizer, objects, count, since } = held;
  const [first] = objects as [ObjectFacts];
  const siblings = removableSiblings(context, held, first.finalizers);
  const owner = ownerResults(context, held, siblings);
  if (owner.isExpected) return [];
  const message = `is held by finalizer ${finalizer}`;
  const foreseen = isForeseen(context, held);
  return [
    {
      code: 'object-finalizer',
      ...foldSubjects(objects, count),
      finalizer,
      message,
      evidence: evidenceOf(first, held, foreseen),
      since: foreseen ? undefined : since,
      scope: 'namespace',
      remedies: [],
      blocksNamespace: isInside(context, first.namespace),
      waitsFor: owner.waitsFor,
      wayOut: owner.wayOut,
    },
    ...owner.results,
    ...(foreseen ? [] : namespacesAwaited(context, held)),
  ];
}

function removableSiblings(context: Context, held: Held, all: readonly string[]): string[] {
  return all.filter(
    (finalizer) =>
      finalizer !== held.finalizer && ownerResults(context, { ...held, finalizer }).isRemovable,
  );
}

function evidenceOf(first: ObjectFacts, held: Held, foreseen: boolean): string[] {
  const many = held.count > 1 ? `the first of ${held.count} such objects: ` : '';
  const writer = writerOf(held);
  return [
    `${many}${foreseen ? '' : `deletionTimestamp ${first.deletionTimestamp}, `}finalizers ${first.finalizers.join(', ')}`,
    writer === undefined
      ? 'managedFields do not say who wrote the finalizer'
      : `managedFields: "${writer.manager}" wrote the finalizer (${writer.operation}${writer.time === undefined ? '' : `, ${writer.time}`})`,
  ];
}

/**
 * Finds entries of the namespace's own lists. No condition covers them: the five are all False while such an
 * entry holds the namespace. It is deleted when both lists are empty (kubernetes
 * pkg/registry/core/namespace/storage/storage.go, ShouldDeleteNamespaceDuringUpdate).
 */
function namespaceFinalizerResults(context: Context, held: Held): RuleResult[] {
  const { namespace } = context.now;
  const { finalizer } = held;
  const isSpec = held.isInSpec === true;
  const siblings = isSpec ? [] : removableSiblings(context, held, namespace.finalizers);
  const owner = ownerResults(context, held, siblings);
  if (owner.isExpected) return [];
  const list = isSpec ? 'spec.finalizers' : 'metadata.finalizers';
  const entries = isSpec ? namespace.specFinalizers : namespace.finalizers;
  return [
    {
      code: isSpec ? 'namespace-spec-finalizer' : 'namespace-finalizer',
      subject: held.subject,
      finalizer,
      message: `is held by ${finalizer} in its ${list}`,
      evidence: [
        `${list}: ${entries.join(', ')}`,
        isSpec
          ? 'the namespace controller removes only its own entry, "kubernetes"'
          : namespace.specFinalizers.length === 0
            ? 'spec.finalizers is empty: the namespace controller has finished and only this list is left'
            : 'the namespace is deleted only when metadata.finalizers and spec.finalizers are both empty',
      ],
      since: namespace.deletionTimestamp,
      scope: 'namespace',
      remedies: [],
      blocksNamespace: true,
      waitsFor: owner.waitsFor,
      wayOut: owner.wayOut,
    },
    ...owner.results,
  ];
}
