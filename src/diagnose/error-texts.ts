import type { ContentError } from './error-kinds.ts';
import { readErrorText } from './error-signatures.ts';

export type { CallFailure, ContentError, ErrorDetail, ServiceRef } from './error-kinds.ts';

const CONTENT_FAILURE = /^Failed to delete all resource types, (\d{1,9}) remaining: /;

/**
 * What any error text says: a condition of the namespace, a failed request, the status of an object,
 * an Event, the answer to a dry run. What is not understood comes back as `other`, never dropped.
 */
export function classifyErrorText(text: string): ContentError[] {
  const prefix = CONTENT_FAILURE.exec(text);
  const errors = prefix
    ? splitContentFailure(text.slice(prefix[0].length), Number(prefix[1]))
    : splitAtKnownStarts(text);
  const byText = new Map<string, ContentError>();
  for (const error of errors) {
    const seen = byText.get(error);
    if (seen) seen.count += 1;
    else byText.set(error, { ...readErrorText(error), text: error, count: 1 });
  }
  return [...byText.values()];
}

/** Number of failing resource types that a NamespaceDeletionContentFailure message states. */
export function statedFailures(message: string): number | undefined {
  const prefix = CONTENT_FAILURE.exec(message);
  return prefix ? Number(prefix[1]) : undefined;
}

/**
 * Undoes `strings.Join(sortedErrors, ", ")` of kube-controller-manager
 * (pkg/controller/namespace/deletion/status_condition_utils.go, makeDeleteContentCondition).
 * The errors may contain ", " themselves; their stated number and their order decide.
 */
function splitContentFailure(tail: string, stated: number): string[] {
  if (stated <= 1) return keep([tail]);
  const piece = repeatedPiece(tail, stated);
  if (piece !== undefined) return keep(Array.from({ length: stated }, () => piece));

  const pieces = cut(tail, startsKnownError);
  if (pieces.length === stated) return pieces;
  if (pieces.length > stated) {
    const sorted = joinUnsorted(pieces);
    return sorted.length >= stated ? sorted : pieces;
  }
  // Errors of extension API servers may begin with anything: cut everywhere if that fits the number.
  const everywhere = cut(tail, (text, at) => !GROUP_VERSION_TAIL.test(text.slice(at, at + 9)));
  return everywhere.length === stated ? everywhere : pieces;
}

/** Go prints a resource as `apps/v1, Resource=x` and a kind as `apps/v1, Kind=X`. */
const GROUP_VERSION_TAIL = /^(?:Resource|Kind)=/;

/** A webhook that matches everything fails with the same words for every type. */
function repeatedPiece(tail: string, times: number): string | undefined {
  const length = (tail.length - 2 * (times - 1)) / times;
  if (!Number.isInteger(length) || length < 1) return undefined;
  const piece = tail.slice(0, length);
  for (let at = length; at < tail.length; at += length + 2) {
    if (!tail.startsWith(', ', at) || !tail.startsWith(piece, at + 2)) return undefined;
  }
  return piece;
}

/** The list is sorted, so a piece that sorts before its predecessor is part of it. */
function joinUnsorted(pieces: string[]): string[] {
  const joined: string[] = [];
  for (const piece of pieces) {
    const last = joined.at(-1);
    if (last !== undefined && piece < last) joined[joined.length - 1] = `${last}, ${piece}`;
    else joined.push(piece);
  }
  return joined;
}

/** Without a stated number, a refusal ends the list: what a webhook's author wrote is free text. */
function splitAtKnownStarts(text: string): string[] {
  const pieces = cut(text, startsKnownError);
  const refusal = pieces.findIndex((piece) => /denied (?:the )?request/.test(piece));
  if (refusal < 0) return pieces;
  return [...pieces.slice(0, refusal), pieces.slice(refusal).join(', ')];
}

/** Cuts at every ", " whose right side begins an error. */
function cut(text: string, beginsError: (text: string, at: number) => boolean): string[] {
  const pieces: string[] = [];
  let start = 0;
  for (let comma = text.indexOf(', '); comma >= 0; comma = text.indexOf(', ', comma + 2)) {
    if (!beginsError(text, comma + 2)) continue;
    pieces.push(text.slice(start, comma));
    start = comma + 2;
  }
  pieces.push(text.slice(start));
  return keep(pieces);
}

function keep(pieces: string[]): string[] {
  return pieces.filter((piece) => piece.trim() !== '');
}

const KNOWN_STARTS = [
  'Internal error occurred: ',
  'failed calling webhook ',
  'admission webhook ',
  'conversion webhook for ',
  'storage is (re)initializing',
  'unexpected items still remain in namespace: ',
  'illegal base64 data at input byte ',
  'unable to transform ',
  'StorageError: ',
  'forbidden: ',
  'the server ',
  'an error on the server (',
  'error trying to reach service',
  'request did not complete within ',
  'context deadline exceeded',
  'Operation cannot be fulfilled on ',
  'Timeout: ',
  'Too many requests',
  'Unauthorized',
  'etcdserver: ',
  'rpc error: ',
  'Get "',
  'Delete "',
];

/** `widgets.example.com is forbidden: …`, `secrets "a" not found`, `Pod "p" is invalid: …` */
const NAMED_START =
  /[A-Za-z0-9-]{1,63}(?:\.[A-Za-z0-9.-]{1,253})? (?:\\?"[^"\\]{0,253}\\?" )?(?:is forbidden: |is invalid|not found|already exists)/y;

function startsKnownError(text: string, at: number): boolean {
  if (KNOWN_STARTS.some((start) => text.startsWith(start, at))) return true;
  NAMED_START.lastIndex = at;
  return NAMED_START.test(text);
}
