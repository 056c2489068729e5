import { admissionDraft, isAdmissionError } from '../admission.ts';
import type { Draft, View } from '../draft.ts';
import type { ContentError } from '../error-texts.ts';
import { crowdedType } from './crowded-type.ts';
import { deadConversions, isInitializing } from './dead-conversions.ts';
import {
  conversionDraft,
  deletionForbiddenDraft,
  failingApiDraft,
  storageDraft,
} from './failing-types.ts';
import { failedSweeps, suspectTypes } from './suspect-types.ts';

/**
 * What the namespace controller could not delete, in the words of NamespaceDeletionContentFailure, and
 * what we could not list ourselves. Only errors that persist: overdue pods have rules of their own.
 */
export function contentFailure(view: View): Draft[] {
  const said = (view.conditions.contentFailure?.errors ?? []).flatMap((error) =>
    draftsOf(view, error),
  );
  return [...said, ...failedSweeps(view)];
}

function draftsOf(view: View, error: ContentError): Draft[] {
  if (isAdmissionError(error)) {
    return [{ ...admissionDraft(view, error, 'DELETE of its content'), blocksNamespace: BECAUSE }];
  }
  if (error.kind === 'conversion-failed') return [conversionDraft(view, error)];
  if (error.kind === 'forbidden') return [deletionForbiddenDraft(view, error)];
  if (error.kind === 'storage') {
    const dead = isInitializing(error) ? deadConversions(view, error) : [];
    return dead.length > 0 ? dead : [storageDraft(view, error)];
  }
  // The pod rules look for themselves: a healthy deletion says this for moments, too.
  if (error.kind === 'unexpected-items') return [];
  return suspectTypes(view).flatMap((type) => {
    const crowd = error.kind === 'timeout' ? crowdedType(view, type, error.text) : undefined;
    return crowd ?? [failingApiDraft(view, type, error.text)];
  });
}

const BECAUSE = 'the namespace controller cannot delete its content';
