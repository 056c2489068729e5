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

interface Family {
  /** Ends with its unit, where it has one: OpenMetrics requires it. */
  name: string;
  unit?: 'seconds';
  help: string;
  samples: readonly Sample[];
}

/** Renders metrics.prom in the OpenMetrics text format; the textfile collector of node_exporter reads it as well. */
export function renderMetrics({ run, namespaces }: View): string {
  const shown = namespaces.slice(0, MAX_NAMESPACES);
  return familiesText([
    {
      name: 'namespace_terminating_seconds',
      unit: 'seconds',
      help: 'Time since the deletion of a namespace that is still terminating was requested.',
      samples: shown.flatMap((namespace) => {
        const ms = isStillHeld(namespace) ? terminatingFor(namespace, run) : undefined;
        if (ms === undefined) return [];
        const { name, root } = namespace;
        const owner = root === undefined ? '' : provenOwner(root);
        const labels = { namespace: name, cause: root?.code ?? '', owner };
        return [[labels, ms / 1_000]];
      }),
    },
    {
      name: 'teardown_duration_seconds',
      unit: 'seconds',
      help: 'Time that the gate waited for a namespace.',
      samples:
        run.kind === 'forecast'
          ? []
          : shown.map(({ name, elapsedMs }) => [{ namespace: name }, elapsedMs / 1_000]),
    },
    {
      name: 'teardown_outcome',
      help: 'Outcome of the run for a namespace; always 1.',
      samples: shown.map(({ name, outcome }) => [{ namespace: name, outcome }, 1]),
    },
    {
      name: 'teardown_namespaces',
      help: 'Namespaces of the run by outcome, also those without series of their own.',
      samples: OUTCOMES.map((outcome) => [
        { outcome },
        namespaces.filter((one) => one.outcome === outcome).length,
      ]),
    },
  ]);
}

/** Returns the workload that should act, only if that is proven: a label has no room for "likely". */
function provenOwner({ code, certainty, subject }: Finding): string {
  const isWorkload = /^(apps|batch)\//.test(subject.apiVersion) || subject.kind === 'Pod';
  const isOwner = code.startsWith('owner-') && certainty === 'proven' && isWorkload;
  return isOwner ? `${subject.kind} ${subject.namespace ?? ''}/${subject.name}` : '';
}

function familiesText(families: readonly Family[]): string {
  const lines = families.flatMap(({ name, unit, help, samples }) => {
    // Two samples with the same labels are an error, and labels are cut: the last one stays.
    const values = new Map(samples.map(([labels, value]) => [labelsText(labels), value]));
    return [
      `# TYPE ${name} gauge`,
      ...(unit === undefined ? [] : [`# UNIT ${name} ${unit}`]),
      `# HELP ${name} ${help}`,
      ...Array.from(values, ([labels, value]) => `${name}${labels} ${value}`),
    ];
  });
  return `${[...lines, '# EOF'].join('\n')}\n`;
}

function labelsText(labels: Record<string, string>): string {
  const parts = Object.entries(labels).map(([name, value]) => {
    const text = shorten(plainText(value.toWellFormed()), MAX_LABEL_CHARS);
    return `${name}="${text.replaceAll('\\', '\\\\').replaceAll('"', '\\"')}"`;
  });
  return parts.length === 0 ? '' : `{${parts.join(',')}}`;
}
