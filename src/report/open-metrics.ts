import { plainText, shorten } from '../base/text.ts';
import { OUTCOMES } from '../model/outcome.ts';
import { isStillHeld } from './causes.ts';
import { terminatingFor } from './sentences.ts';
import type { View } from './view.ts';

const MAX_LABEL_CHARS = 120;

type Sample = [labels: Record<string, string>, value: number];

/** Renders metrics.prom in the OpenMetrics text format; the textfile collector of node_exporter reads it as well. */
export function renderMetrics({ run, namespaces }: View): string {
  const ages = namespaces.filter(isStillHeld).flatMap((one): Sample[] => {
    const ms = terminatingFor(one, run);
    const labels = { namespace: one.name, cause: one.root?.code ?? '' };
    return ms === undefined ? [] : [[labels, ms / 1_000]];
  });
  const waits = run.kind === 'forecast' ? [] : namespaces;
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
      namespaces.map(({ name, outcome }) => [{ namespace: name, outcome }, 1]),
    ),
    family(
      'teardown_namespaces',
      'Namespaces of the run by outcome.',
      OUTCOMES.map((outcome) => [
        { outcome },
        namespaces.filter((one) => one.outcome === outcome).length,
      ]),
    ),
    '# EOF\n',
  ].join('\n');
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
