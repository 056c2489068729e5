import type { ResourceType, TypeContent } from '../../model/snapshot.ts';
import type { Draft, View } from '../draft.ts';
import { classifyErrorText } from '../error-texts.ts';
import { isBuiltIn } from '../owner/held.ts';
import { conversionDraft, failingApiDraft, storageDraft } from './failing-types.ts';

/**
 * Types that an error without a name can be about. The controller deletes every type it lists, so
 * what still has objects that were never asked to go is where it failed; an extension API comes first,
 * since its backend answers in its own words.
 */
export function suspectTypes(view: View): ResourceType[] {
  const left = view.now.content.filter(({ read }) => read.ok && read.value.queued > 0);
  const extension = left.filter(({ type }) => isServedByBackend(view, type));
  const custom = left.filter(({ type }) => !isBuiltIn(type.group));
  const best = [extension, custom, left].find((list) => list.length > 0) ?? [];
  return best.map(({ type }) => type);
}

function isServedByBackend(view: View, type: ResourceType): boolean {
  const services = view.now.details?.apiServices;
  return (
    services?.ok === true &&
    services.value.some(({ group, service }) => group === type.group && service !== undefined)
  );
}

/**
 * Types that our own LIST failed on although their group answers: the controller lists them too. A
 * refusal is our missing right, not a fault of the API.
 */
export function failedSweeps(view: View): Draft[] {
  return view.now.content.flatMap((content) => draftsOf(view, content));
}

function draftsOf(view: View, { type, read }: TypeContent): Draft[] {
  // A cache that cannot be filled answers 429 (apiserver, pkg/storage/cacher): that is no throttling.
  if (read.ok) return [];
  if (read.failure.kind !== 'server-error' && read.failure.kind !== 'throttled') return [];
  const known = classifyErrorText(read.failure.message);
  for (const error of known) {
    if (error.kind === 'conversion-failed') return [conversionDraft(view, error)];
    if (error.kind === 'storage') return [storageDraft(view, error, type)];
  }
  return read.failure.kind === 'server-error'
    ? [failingApiDraft(view, type, read.failure.message)]
    : [];
}
