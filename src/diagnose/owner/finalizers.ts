import { KUBERNETES_FINALIZER, NAMESPACE_TYPE } from '../../model/facts/metadata.ts';
import { valueIn } from '../../model/read.ts';
import type { ObjectFacts, ObjectGroup, TypeContent } from '../../model/snapshot.ts';
import { type Context, isForeseen, isInside } from '../context.ts';
import { finalizerSet, shrinkingTypes } from '../movement.ts';
import { foldSubjects, namespaceSubject, type RuleResult, subjectOf } from '../results.ts';
import { isClaimInUse } from '../rules/pods.ts';
import { namespacesAwaited, objectsAwaited } from '../waits.ts';
import { writerText } from './absent.ts';
import { finalizersOfObject, type Held } from './held.ts';
import { ownerResults } from './owner.ts';

/** Returns everything that a finalizer holds: the Namespace itself, objects in it, and objects outside for which they wait. */
export function everythingHeld(context: Context): Held[] {
  const inside = heldObjects(context);
  const outside = heldOutside(context, inside);
  return [...heldNamespace(context), ...inside, ...outside];
}

function heldNamespace({ now: { namespace } }: Context): Held[] {
  const { deletionTimestamp: since = '', finalizers, name, specFinalizers, writers } = namespace;
  const subject = namespaceSubject(name);
  const base = { subject, type: NAMESPACE_TYPE, objects: [], count: 1, since };
  return [
    ...finalizers.map((finalizer) => ({ ...base, finalizer, writers })),
    ...specFinalizers
      .filter((finalizer) => finalizer !== KUBERNETES_FINALIZER)
      .map((finalizer) => ({ ...base, finalizer, writers: [], isInSpec: true })),
  ];
}

/** Returns every finalizer that holds terminating objects, unless these are being deleted one by one. */
export function heldObjects(context: Context): Held[] {
  const { before, now } = context;
  const shrinking = before === undefined ? [] : shrinkingTypes(before, now);
  return now.content.flatMap((content) =>
    (valueIn(content.read)?.terminating ?? [])
      .filter(({ finalizers }) =>
        shrinking.every(
          (one) =>
            one.type !== content.type || finalizerSet(one.finalizers) !== finalizerSet(finalizers),
        ),
      )
      .flatMap((group) =>
        [...new Set(group.finalizers)].flatMap((name) => heldIn(context, content, group, name)),
      ),
  );
}

function heldIn(
  context: Context,
  { type }: TypeContent,
  { count, examples, since }: ObjectGroup,
  finalizer: string,
): Held[] {
  // Claims that a pod still uses have a finding of their own.
  const objects = examples.filter((object) => !isClaimInUse(context, object, finalizer));
  const [first] = objects;
  if (first === undefined) return [];
  const left = count - (examples.length - objects.length);
  const { writers } = first;
  return [{ finalizer, subject: subjectOf(first), type, objects, count: left, since, writers }];
}

/** Returns partners and children of held objects outside of the namespace, and Nodes of its pods, that are held in turn. */
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
  return everythingHeld(context).flatMap((held) => heldResults(context, held));
}

/** Returns one finding per finalizer and cause; objects without deletionTimestamp are queued and never held. */
function heldResults(context: Context, held: Held): RuleResult[] {
  const { count, finalizer, isInSpec, objects, since, subject } = held;
  const { namespace } = context.now;
  const [first] = objects;
  const isAhead = isForeseen(context, held);
  const beside = first?.finalizers ?? (isInSpec ? [] : namespace.finalizers);
  const siblings = beside.filter(
    (other) =>
      other !== finalizer && ownerResults(context, { ...held, finalizer: other }).isRemovable,
  );
  const { isExpected, results, waitsFor, wayOut } = ownerResults(context, held, siblings);
  if (isExpected) return [];
  const list = isInSpec ? 'spec.finalizers' : 'metadata.finalizers';
  const deletion = isAhead ? '' : `deletionTimestamp ${first?.deletionTimestamp}, `;
  const evidence = first
    ? [
        `${count > 1 ? `the first of ${count} such objects: ` : ''}${deletion}finalizers ${first.finalizers.join(', ')}`,
        writerText(held),
      ]
    : [`${list}: ${(isInSpec ? namespace.specFinalizers : namespace.finalizers).join(', ')}`];
  const code = first ? 'object' : isInSpec ? 'namespace-spec' : 'namespace';
  return [
    {
      code: `${code}-finalizer`,
      ...(first ? foldSubjects(objects, count) : { subject }),
      finalizer,
      message: first
        ? `is held by finalizer ${finalizer}`
        : `is held by ${finalizer} in its ${list}`,
      evidence,
      since: isAhead ? undefined : since,
      scope: 'namespace',
      remedies: [],
      blocksNamespace: first === undefined || isInside(context, first.namespace),
      ...{ waitsFor, wayOut },
    },
    ...results,
    ...(isAhead ? [] : namespacesAwaited(context, held)),
  ];
}
