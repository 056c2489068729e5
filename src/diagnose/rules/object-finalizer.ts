import type { ObjectFacts, ObjectGroup, TypeContent } from '../../observe/snapshot.ts';
import { type Draft, findingId, type View } from '../draft.ts';
import { shrinkingTypes } from '../movement.ts';
import { ownerDraft } from '../owners.ts';
import { objectFinalizerRemedies } from '../remedies/object.ts';
import { foldSubjects, subjectOf } from '../subjects.ts';
import { isClaimInUse } from './volume-in-use.ts';

/**
 * Objects that were asked to go and are held by finalizers. One finding per finalizer and cause;
 * objects without deletionTimestamp are queued and never appear here.
 */
export function objectFinalizer(view: View): Draft[] {
  return view.now.content.flatMap((content) => {
    if (!content.read.ok) return []; // listed under "not inspected"
    return content.read.value.terminating
      .filter((group) => group.finalizers.length > 0 && !isMoving(view, content, group))
      .flatMap((group) => draftsOf(view, content, group));
  });
}

function draftsOf(view: View, content: TypeContent, group: ObjectGroup): Draft[] {
  return group.finalizers.flatMap((finalizer) => {
    const objects = group.examples.filter((object) => !isClaimInUse(view, object, finalizer));
    const first = objects[0];
    if (first === undefined) return [];
    const count = group.count - (group.examples.length - objects.length);
    const owner = ownerDraft(view, {
      finalizer,
      object: subjectOf(first),
      writers: first.writers,
      type: content.type,
      facts: first,
    });
    return [
      {
        code: 'object-finalizer',
        ...foldSubjects(objects, count),
        finalizer,
        message: `is held by finalizer ${finalizer}`,
        evidence: evidenceOf(first, finalizer, count),
        since: group.since,
        scope: 'namespace',
        remedies: objectFinalizerRemedies({
          object: first,
          type: content.type,
          finalizer,
          index: first.finalizers.indexOf(finalizer),
          count,
        }),
        blocksNamespace: `it is terminating since ${group.since} and has finalizer ${finalizer}`,
        waitsFor: [
          {
            id: findingId(owner.code, owner.subject, owner.finalizer),
            because: 'only its owner removes the finalizer',
          },
        ],
      } satisfies Draft,
      owner,
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
function isMoving(view: View, content: TypeContent, group: ObjectGroup): boolean {
  if (view.before === undefined) return false;
  return shrinkingTypes(view.before, view.now).some(
    (moving) =>
      moving.content === content &&
      moving.finalizers.length === group.finalizers.length &&
      moving.finalizers.every((finalizer) => group.finalizers.includes(finalizer)),
  );
}
