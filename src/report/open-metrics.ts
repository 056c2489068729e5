import { plainText, shorten } from '../base/text.ts';
import type { Finding } from '../model/finding.ts';
import { OUTCOMES } from '../model/outcome.ts';
import { isStillHeld } from './causes.ts';
import { terminatingFor } from './sentences.ts';
import type { View } from './view.ts';

/** Namespaces with series of their own, the worst first; the rest are only counted in `teardown_namespaces`. */
const MAX_NAMESPACES = 1_000;
const MAX_LABEL_CHARS = 120;

type Sample = [labels: Record<string, string>, value: number];

/** Renders metrics.prom in the OpenMetrics text format; the textfile collector of node_exporter reads it as well. */
export function renderMetrics({ run, namespaces }: View): string {
  const shown = namespaces.slice(0, MAX_NAMESPACES);
  const ages = shown.filter(isStillHeld).flatMap((namespace): Sample[] => {
    const ms = terminatingFor(namespace, run);
    const { name, root } = namespace;
    const labels = {
      namespace: name,
      cause: root?.code ?? '',
      owner: root ? provenOwner(root) : '',
    };
    return ms === undefined ? [] : [[labels, ms / 1_000]];
  });
  const waits = run.kind === 'forecast' ? [] : shown;
  return [
    family(
      'namespace_terminating_seconds',
      'Time since the deletion of a namespace that is still terminating was requested.',
      ages,
    ),
    family(
      'teardown_duration_seconds',
      'Time that the gate waited for a namespace.',
      waits.map(({ name, elapsedMs }) => [{ namespace: name }, elapsedMs / 1_000]),
    ),
    family(
      'teardown_outcome',
      'Outcome of the run for a namespace; always 1.',
      shown.map(({ name, outcome }) => [{ namespace: name, outcome }, 1]),
    ),
    family(
      'teardown_namespaces',
      'Namespaces of the run by outcome, also those without series of their own.',
      OUTCOMES.map((outcome) => [
        { outcome },
        namespaces.filter((one) => one.outcome === outcome).length,
      ]),
    ),
    '# EOF\n',
  ].join('\n');
}

/** Returns the workload that should act, only if that is proven: a label has no room for "likely". */
function provenOwner({ code, certainty, subject }: Finding): string {
  const isWorkload = /^(apps|batch)\//.test(subject.apiVersion) || subject.kind === 'Pod';
  const isOwner = code.startsWith('owner-') && certainty === 'proven' && isWorkload;
  return isOwner ? `${subject.kind} ${subject.namespace ?? ''}/${subject.name}` : '';
}

function family(name: string, help: string, samples: readonly Sample[]): string {
  // Two samples with the same labels are an error, and labels are cut: the last one stays.
  const values = new Map(samples.map(([labels, value]) => [labelsText(labels), value]));
  return [
    `# TYPE ${name} gauge`,
    ...(name.endsWith('_seconds') ? [`# UNIT ${name} seconds`] : []),
    `# HELP ${name} ${help}`,
    ...Array.from(values, ([labels, value]) => `${name}{${labels}} ${value}`),
  ].join('\n');
}

function labelsText(labels: Record<string, string>): string {
  const parts = Object.entries(labels).map(([name, value]) => {
    const text = shorten(plainText(value.toWellFormed()), MAX_LABEL_CHARS);
    return `${name}="${text.replace(/[\\"]/g, '\\$&')}"`;
  });
  return parts.join(',');
}
