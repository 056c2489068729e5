import type { ResourceType } from '../../model/snapshot.ts';
import { typeName, typeSubject } from '../display.ts';
import type { Draft, View } from '../draft.ts';
import { shrinkingTypes } from '../movement.ts';
import { contentDeletingRemedies } from '../remedies/general.ts';

/** The API server cuts a collection delete off after 60 s; seen with 100,000 objects on two cores. */
const CROWD = 5_000;

/**
 * A type with more objects than one request of the namespace controller can delete. Its request is cut
 * off, the condition complains, and it begins again: that is slow, and no fault of the API, which
 * answered our own LIST. `undefined` when there is no such crowd.
 */
export function crowdedType(view: View, type: ResourceType, text: string): Draft[] | undefined {
  const content = view.now.content.find((entry) => entry.type === type);
  if (content?.read.ok !== true || content.read.value.total < CROWD) return undefined;
  const { total, queued } = content.read.value;
  const moving = view.before === undefined ? [] : shrinkingTypes(view.before, view.now);
  // "content-deleting" says it already, with the counts then and now.
  if (moving.some((shrinking) => shrinking.content.type === type)) return [];
  return [
    {
      code: 'content-deleting',
      subject: typeSubject(type),
      message: `are too many for one request of the namespace controller, which begins again after each: ${queued} of ${total} have not been asked to go yet`,
      evidence: [text, `our own LIST of ${typeName(type)} was answered: ${total} objects`],
      scope: 'namespace',
      count: queued,
      remedies: contentDeletingRemedies({ type }),
      blocksNamespace: `${queued} of them have not been asked to go yet`,
    },
  ];
}
