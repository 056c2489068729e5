import { admissionDraft, deadUpdateWebhooks, isAdmissionError } from '../admission.ts';
import { typeName } from '../display.ts';
import type { Draft, View } from '../draft.ts';
import type { Held } from '../owner/held.ts';
import type { Refusal } from '../owner/refusals.ts';

/**
 * Webhooks and policies that refuse the update which removes a finalizer: named by what was said, or
 * certain to refuse because they match it, fail closed and have no backend.
 */
export function refusingDrafts(view: View, held: Held, refusals: readonly Refusal[]): Draft[] {
  const request = `UPDATE of ${held.type === undefined ? 'the namespace' : typeName(held.type)}`;
  const said = refusals.flatMap(({ error }) =>
    isAdmissionError(error) ? [admissionDraft(view, error, request)] : [],
  );
  if (held.type === undefined) return said;
  return [...said, ...deadUpdateWebhooks(view, held.type, held.facts?.labels ?? {})];
}
