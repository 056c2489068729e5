import type { ObjectFacts, ObjectGroup, ResourceType, TypeContent } from '../../model/snapshot.ts';
import type { Draft, View } from '../draft.ts';
import { finalizerSet, shrinkingTypes } from '../movement.ts';
import type { Held } from '../owner/held.ts';
import { isRemovalRefused } from '../owner/refusals.ts';
import { ownerDrafts, ownerLink } from '../owners.ts';
import { objectFinalizerRemedies } from '../remedies/object.ts';
import { foldSubjects, subjectOf } from '../subjects.ts';
import { isClaimInUse } from './volume-in-use.ts';

/** A group of objects that one finalizer holds, with what is needed to look for its owner. */
export interface HeldGroup {
  held: Held;
  group: ObjectGroup;
  /** Examples, without claims that a pod still uses: those have a finding of their own. */
  objects: ObjectFacts[];
}

/** Every finalizer that holds terminating objects which do not go away by themselves. */
export function heldObjects(view: View): HeldGroup[] {
  const moving = movingSets(view);
  return view.now.content.flatMap((content) => {
    if (!content.read.ok) return []; // listed under "not inspected"
    const isMoving = ({ finalizers }: ObjectGroup): boolean =>
      moving.get(content)?.has(finalizerSet(finalizers)) ?? false;
    return content.read.value.terminating
      .filter((group) => !isMoving(group))
      .flatMap((group) => group.finalizers.flatMap((name) => heldBy(view, content, group, name)));
  });
}

function heldBy(
  view: View,
  { type }: TypeContent,
  group: ObjectGroup,
  finalizer: string,
): HeldGroup[] {
  const objects = group.examples.filter((object) => !isClaimInUse(view, object, finalizer));
  const facts = objects[0];
  if (facts === undefined) return [];
  const count = group.count - (group.examples.length - objects.length);
  const held = { finalizer, object: subjectOf(facts), writers: facts.writers, type, facts, count };
  return [{ held, group, objects }];
}

/**
 * Objects that were asked to go and are held by finalizers. One finding per finalizer and cause;
 * objects without deletionTimestamp are queued and never appear here.
 */
export function objectFinalizer(view: View): Draft[] {
  return heldObjects(view).flatMap(({ held, group, objects }) => {
    const { finalizer, count } = held;
    const first = objects[0] as ObjectFacts;
    const owners = ownerDrafts(view, held);
    return [
      {
        code: 'object-finalizer',
        ...foldSubjects(objects, count),
        finalizer,
        message: `is held by finalizer ${finalizer}`,
        evidence: evidenceOf(first, finalizer, count),
        since: group.since,
        scope: 'namespace',
        remedies: objectFinalizerRemedies(
          {
            object: first,
            type: held.type as ResourceType,
            finalizer,
            index: first.finalizers.indexOf(finalizer),
            count,
          },
          isRemovalRefused(view, held),
        ),
        blocksNamespace: `it is terminating since ${group.since} and has finalizer ${finalizer}`,
        waitsFor: [ownerLink(owners[0])],
      } satisfies Draft,
      ...owners,
    ];
  });
}

function evidenceOf(first: ObjectFacts, finalizer: string, count: number): string[] {
  const many = count > 1 ? `the first of ${count} such objects: ` : '';
  const writer = first.writers.find((entry) => entry.finalizer === finalizer);
  return [
    `${many}deletionTimestamp ${first.deletionTimestamp}, finalizers ${first.finalizers.join(', ')}`,
    writer === undefined
      ? 'managedFields do not say who wrote the finalizer'
      : `managedFields: "${writer.manager}" wrote the finalizer (${writer.operation}${writer.time === undefined ? '' : `, ${writer.time}`})`,
  ];
}

/** Objects that go one by one are "content-deleting", not held. */
function movingSets(view: View): Map<TypeContent, Set<string>> {
  const sets = new Map<TypeContent, Set<string>>();
  if (view.before === undefined) return sets;
  for (const { content, finalizers } of shrinkingTypes(view.before, view.now)) {
    const known = sets.get(content) ?? new Set();
    sets.set(content, known.add(finalizerSet(finalizers)));
  }
  return sets;
}
