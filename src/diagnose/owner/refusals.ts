import type { EventFacts, ObjectStatus, Trial } from '../../model/snapshot.ts';
import type { View } from '../draft.ts';
import { type ContentError, classifyErrorText } from '../error-texts.ts';
import type { Held } from './held.ts';

/** Something that the owner, or the API server for it, said it cannot do. */
export interface Refusal {
  error: ContentError;
  /** Where it was said. */
  source: string;
}

/** Words of failure that no known signature explains. */
const FAILURE = /\b(?:error|failed|failure|cannot|denied|refused|forbidden|unable|unauthorized)\b/i;

/** What speaks of failing clean-up: the object's status, warning events, a dry run of the removal. */
export function refusalsFor(view: View, held: Held): Refusal[] {
  return [...fromTrial(view, held), ...fromStatus(view, held), ...fromEvents(view, held)];
}

/** The API server has just said, to a dry run, that it would not accept the removal. */
export function isRemovalRefused(view: View, held: Held): boolean {
  return trialOf(view, held)?.answer === 'refused';
}

function trialOf(view: View, held: Held): Trial | undefined {
  return view.now.details?.trials[`${held.facts?.uid ?? ''} ${held.finalizer}`];
}

function fromTrial(view: View, held: Held): Refusal[] {
  const trial = trialOf(view, held);
  if (trial?.answer !== 'refused') return [];
  return classifyErrorText(trial.message)
    .filter(({ kind }) => kind !== 'dry-run-unsupported')
    .map((error) => ({
      error,
      source: 'the API server, asked by a dry run to remove the finalizer',
    }));
}

function fromStatus(view: View, held: Held): Refusal[] {
  const read = view.now.details?.statuses[held.facts?.uid ?? ''];
  if (read?.ok !== true) return [];
  return textsOf(read.value).flatMap(({ text, place }) => refusal(text, place));
}

function textsOf(status: ObjectStatus): { text: string; place: string }[] {
  return [
    ...status.conditions.map(({ type, status: value, reason, message }) => ({
      text: message === '' ? reason : message,
      place: `the object's status condition ${type}=${value} (${reason})`,
    })),
    ...status.texts.map((text) => ({ text, place: "the object's status" })),
  ];
}

function fromEvents(view: View, held: Held): Refusal[] {
  const lists = Object.entries(view.now.details?.events ?? {});
  return lists.flatMap(([namespace, read]) =>
    read.ok
      ? read.value
          .filter((event) => concerns(event, held))
          .flatMap((event) =>
            refusal(event.message, `an event in namespace ${namespace} (${event.reason})`),
          )
      : [],
  );
}

/** Events about a terminating object cannot be written beside it, so they may only mention it. */
function concerns(event: EventFacts, held: Held): boolean {
  const { name, namespace } = held.object;
  if (held.facts !== undefined && event.regarding.uid === held.facts.uid) return true;
  const mentions = new RegExp(`(?:^|[^a-z0-9.-])${escapeRegExp(name)}(?:[^a-z0-9.-]|$)`);
  return (
    mentions.test(event.message) &&
    (namespace === undefined ||
      event.message.includes(namespace) ||
      event.message.includes(held.type?.resource ?? held.object.kind))
  );
}

function refusal(text: string, source: string): Refusal[] {
  const errors = classifyErrorText(text);
  const known = errors.filter(({ kind }) => kind !== 'other');
  if (known.length > 0) return known.map((error) => ({ error, source }));
  return FAILURE.test(text) ? errors.slice(0, 1).map((error) => ({ error, source })) : [];
}

function escapeRegExp(text: string): string {
  return text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
}
