import { KUBERNETES_FINALIZER, NAMESPACE_TYPE } from '../../model/facts/metadata.ts';
import { groupsOf } from '../content.ts';
import { type Context, isForeseen, isInside } from '../context.ts';
import { keyOfSet, shrinkingSets } from '../movement.ts';
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
  const shrinking = before === undefined ? [] : shrinkingSets(before, now).map(keyOfSet);
  return groupsOf(now).flatMap((group): Held[] => {
    if (shrinking.includes(keyOfSet(group))) return [];
    const { count, examples, finalizers, since, type } = group;
    return [...new Set(finalizers)].flatMap((finalizer) => {
      // Claims that a pod still uses have a finding of their own.
      const objects = examples.filter((object) => !isClaimInUse(context, object, finalizer));
      const left = count - (examples.length - objects.length);
      const common = { finalizer, type, objects, count: left, since };
      const [first] = objects;
      return first ? [{ ...common, subject: subjectOf(first), writers: first.writers }] : [];
    });
  });
}

/** Returns partners and children of held objects outside of the namespace, and Nodes of its pods, that are held in turn. */
function heldOutside(context: Context, inside: readonly Held[]): Held[] {
  const seen = new Set<string>();
  const all = [...inside];
  // A loop also visits what is added meanwhile.
  for (const held of all) {
    for (const object of objectsAwaited(context, held)) {
      if (!seen.has(object.uid)) all.push(...finalizersOfObject(context, object));
      seen.add(object.uid);
    }
  }
  return all.slice(inside.length).filter(({ subject }) => !isInside(context, subject.namespace));
}

/** Returns one finding per finalizer and cause; objects without deletionTimestamp are queued and never held. Of thousands of siblings, 20 are judged. */
export function heldResults(context: Context, held: Held): RuleResult[] {
  const { count, finalizer, isInSpec, objects, since, subject } = held;
  const { namespace } = context.now;
  const [first] = objects;
  const isAhead = isForeseen(context, held);
  const beside = (first?.finalizers ?? (isInSpec ? [] : namespace.finalizers)).slice(0, 20);
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
