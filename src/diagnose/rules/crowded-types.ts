import type { ContentCount, ResourceType } from '../../observe/snapshot.ts';
import { typeName, typeSubject } from '../display.ts';
import type { Draft, View } from '../draft.ts';
import type { ContentError } from '../error-kinds.ts';
import { shrinkingTypes } from '../movement.ts';
import { contentDeletingRemedies } from '../remedies/general.ts';
import { isServedByBackend } from './suspect-types.ts';

/** The API server cuts a collection delete off after 60 s; seen with 100,000 objects on two cores. */
const CROWD = 5_000;

interface Crowd {
  type: ResourceType;
  count: ContentCount;
}

/**
 * Types with more objects than one request of the namespace controller can delete. Its request is cut
 * off, the condition complains, and it begins again: that is slow, and no fault of the API, which
 * answered our own LIST. `undefined` when the error cannot be about such a type.
 */
export function crowdedTypes(view: View, error: ContentError): Draft[] | undefined {
  if (error.kind !== 'timeout') return undefined;
  const crowds = view.now.content.flatMap(({ type, read }): Crowd[] =>
    read.ok && read.value.total >= CROWD && !isServedByBackend(view, type)
      ? [{ type, count: read.value }]
      : [],
  );
  if (crowds.length === 0) return undefined;
  const moving = view.before === undefined ? [] : shrinkingTypes(view.before, view.now);
  return crowds
    .filter(({ count }) => count.queued > 0)
    .filter(({ type }) => !moving.some(({ content }) => content.type === type))
    .map((crowd) => crowdedDraft(crowd, error.text));
}

function crowdedDraft({ type, count }: Crowd, text: string): Draft {
  const { total, queued } = count;
  return {
    code: 'content-deleting',
    subject: typeSubject(type),
    message: `are too many for one request of the namespace controller, which begins again after each: ${queued} of ${total} have not been asked to go yet`,
    evidence: [text, `our own LIST of ${typeName(type)} was answered: ${total} objects`],
    scope: 'namespace',
    count: queued,
    remedies: contentDeletingRemedies({ type }),
    blocksNamespace: `${queued} of them have not been asked to go yet`,
  };
}
