import { plainText, shorten } from '../base/text.ts';
import type { NamespaceResult, RunResult } from '../model/result.ts';
import { nothingToTell, stateWords } from './headline.ts';
import { worstFirst } from './order.ts';
import { sameCauseAs } from './shared-cause.ts';
import { namespaceLine } from './summary-line.ts';
import { explanationLines } from './text.ts';

/** Ten annotations of a kind are shown for a step; the tenth says how many more there are. */
const MAX_ANNOTATIONS = 10;
const MAX_ANNOTATION_CHARS = 500;
const MAX_EXPLAINED = 20;
const TITLE = 'Namespace teardown';

export interface LogEnd {
  lines: string[];
  groups: { title: string; lines: string[] }[];
  annotations: Annotation[];
}

export interface Annotation {
  level: 'error' | 'warning' | 'notice';
  title: string;
  message: string;
}

/** What the step log ends with: a line per namespace, what is behind it folded, one annotation each. */
export function renderLogLines(result: RunResult): LogEnd {
  if (result.namespaces.length === 0) return nothingMatched(result);
  const ordered = worstFirst(result.namespaces);
  const same = sameCauseAs(ordered);
  const told = ordered
    .map((namespace) => ({
      namespace,
      lines: explanationLines(namespace, result, same.get(namespace)),
    }))
    .filter(({ lines }) => lines.length > 0)
    .slice(0, MAX_EXPLAINED);
  const looked = ordered.filter(({ diagnosis }) => diagnosis !== undefined).slice(0, MAX_EXPLAINED);
  return {
    lines: [
      ...ordered.map((namespace) => plainText(`${namespace.name} ${stateWords(namespace)}`)),
      ...told.flatMap(({ namespace, lines }) => [
        '',
        ...(ordered.length > 1 ? [plainText(`${namespace.name}:`)] : []),
        ...lines,
      ]),
    ],
    groups: looked.map((namespace) => ({
      title: lookTitle(namespace, ordered.length > 1),
      lines: lookLines(namespace),
    })),
    annotations: annotationsOf(ordered, result),
  };
}

function nothingMatched(result: RunResult): LogEnd {
  const { verdict } = result;
  const annotation: Annotation = { level: 'error', title: TITLE, message: nothingToTell(result) };
  return {
    lines: [nothingToTell(result)],
    groups: [],
    annotations: verdict === 'fail' ? [annotation] : [],
  };
}

function annotationsOf(ordered: readonly NamespaceResult[], result: RunResult): Annotation[] {
  const told = ordered.filter(({ verdict }) => verdict !== 'pass');
  const shown = told.length > MAX_ANNOTATIONS ? told.slice(0, MAX_ANNOTATIONS - 1) : told;
  const annotations = shown.map((namespace) => annotationOf(namespace, result));
  const left = told.slice(shown.length);
  if (left.length > 0) {
    annotations.push({
      level: left.some(({ verdict }) => verdict === 'fail') ? 'error' : 'warning',
      title: TITLE,
      message: `and ${left.length} more namespaces that did not simply go; the job summary has them`,
    });
  }
  return annotations;
}

function annotationOf(namespace: NamespaceResult, result: RunResult): Annotation {
  return {
    level: namespace.verdict === 'fail' ? 'error' : 'warning',
    title: plainText(`${TITLE}: ${namespace.name}`),
    message: shorten(namespaceLine(namespace, result), MAX_ANNOTATION_CHARS),
  };
}

function lookTitle(
  { name, diagnosis, examination }: NamespaceResult,
  isOneOfMany: boolean,
): string {
  const facts = [
    `${diagnosis?.inspectedTypes ?? 0} types`,
    ...(examination === undefined
      ? []
      : [`${examination.requests} requests`, `${(examination.ms / 1_000).toFixed(1)} s`]),
  ];
  return plainText(`What was looked at${isOneOfMany ? ` in ${name}` : ''} (${facts.join(', ')})`);
}

function lookLines({ diagnosis, conditions, timeline }: NamespaceResult): string[] {
  return [
    ...(diagnosis?.findings ?? [])
      .slice(0, 100)
      .flatMap((finding) => [
        `${finding.code}: ${finding.subject.kind} ${finding.subject.name} ${finding.message}`,
        ...finding.evidence.map((line) => `  ${line}`),
      ]),
    ...(diagnosis?.notInspected ?? []).map(
      ({ what, reason }) => `not inspected: ${what}: ${reason}`,
    ),
    ...conditions.map(
      ({ type, status, reason, message }) => `condition ${type}=${status} ${reason}: ${message}`,
    ),
    ...timeline.map(({ at, event }) => `${at} ${event}`),
  ].map((line) => plainText(shorten(line, 2_000)));
}
