import { isDeepStrictEqual } from 'node:util';
import type { Answer, Look } from './look.ts';

/** What can move between two engines, worst first. */
export const CLASSES = [
  'not comparable',
  'other name',
  'to missing',
  'false clear',
  'lost root cause',
  'new root cause',
  'other state',
  'to unknown',
  'less sure',
  'surer',
  'text',
] as const;
export type Class = (typeof CLASSES)[number];

/** The worst that moved in one recording, and all that did. */
export interface Move {
  id: string;
  kind: Class;
  lines: string[];
}

export function movesBetween(
  old: Map<string, Look>,
  now: Map<string, Look>,
  isWhole = false,
): Move[] {
  const all = [...new Set([...now.keys(), ...old.keys()])];
  return all.flatMap((id): Move[] => {
    const [before, after] = [old.get(id), now.get(id)];
    if (before === undefined || after === undefined || before.error !== after.error) {
      const [was, is] = [before, after].map((one) => one?.error ?? one?.outcome ?? 'none');
      return [{ id, kind: 'not comparable', lines: [`${was} → ${is}`] }];
    }
    return [moveOf(before, after, isWhole) ?? []].flat();
  });
}

function moveOf(before: Look, after: Look, isWhole: boolean): Move | undefined {
  const { id } = after;
  const keys = new Set([...before.answers, ...after.answers].map(({ key }) => key));
  const moved = [...keys].flatMap((key) => {
    const [was, is] = [before, after].map(({ answers }) =>
      answers.filter((one) => one.key === key),
    );
    const kind = classOf(was ?? [], is ?? []);
    if (kind === undefined) return [];
    return [{ kind, line: `${shown(isWhole, was)} → ${shown(isWhole, is)}` }];
  });
  if (before.outcome !== after.outcome) {
    const line = `${before.outcome} → ${after.outcome}`;
    moved.push({ kind: ofOutcome(before.outcome, after.outcome), line });
  }
  const [worst] = CLASSES.filter((kind) => moved.some((one) => one.kind === kind));
  if (worst !== undefined) {
    const ordered = moved.toSorted((a, b) => CLASSES.indexOf(a.kind) - CLASSES.indexOf(b.kind));
    return { id, kind: worst, lines: [...new Set(ordered.map(({ line }) => line))] };
  }
  const isSame = before.text === after.text;
  return isSame ? undefined : { id, kind: 'text', lines: isWhole ? textsOf(before, after) : [] };
}

/** Returns how the answer to one question moved: what is held by one finalizer, or one other finding. */
export function classOf(was: readonly Answer[], is: readonly Answer[]): Class | undefined {
  const has = (code: string): boolean[] =>
    [was, is].map((all) => all.some((one) => one.code === code));
  const same = (part: (one: Answer) => unknown): boolean =>
    isDeepStrictEqual(was.map(part), is.map(part));
  const [wasUnknown, isUnknown] = has('owner-unknown');
  const [wasMissing, isMissing] = has('owner-missing');
  const isNamed = is.some(({ code }) => /^owner-(?!unknown|missing)/.test(code));
  if (isNamed && was.length > 0 && !wasUnknown && !same(({ who }) => who)) return 'other name';
  if (isMissing && !wasMissing) return 'to missing';
  const [wasRoot, isRoot] = [was, is].map((all) => all.some((one) => one.isRoot));
  if (wasRoot !== isRoot) return wasRoot ? 'lost root cause' : 'new root cause';
  if (wasUnknown !== isUnknown) return wasUnknown ? 'surer' : 'to unknown';
  if (!same(({ code, isRoot }) => [code, isRoot])) return 'other state';
  if (same(({ who, certainty }) => [who, certainty])) return undefined;
  return is.some(({ certainty }) => certainty === 'proven') ? 'surer' : 'less sure';
}

function ofOutcome(was: string, is: string): Class {
  if (is === 'clear') return 'false clear';
  if (is === 'would-hang' || is === 'stuck') return was === 'clear' ? 'new root cause' : 'surer';
  return was === 'clear' ? 'less sure' : 'to unknown';
}

function shown(isWhole: boolean, all: readonly Answer[] = []): string {
  const each = all.map(({ code, who, sentence, certainty, isRoot }) => {
    const text = isWhole ? `${code}: ${sentence}` : `${code} ${who}`;
    return `${text}${certainty && ` (${certainty})`}${isRoot ? '' : ', no root cause'}`;
  });
  return each.join(' + ') || 'nothing';
}

/** Returns the texts that only one of two looks has. */
function textsOf(before: Look, after: Look): string[] {
  const [was, is] = [before, after].map(({ text }) =>
    JSON.stringify(JSON.parse(text), null, 1).split('\n'),
  );
  const without = (all: string[] = [], others: string[] = []): string[] =>
    all.filter((one) => !others.includes(one)).map((one) => one.trim());
  return [
    ...without(was, is).map((one) => `- ${one}`),
    ...without(is, was).map((one) => `+ ${one}`),
  ];
}
