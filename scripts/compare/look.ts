import { pathToFileURL } from 'node:url';
import { diagnose } from '../../src/diagnose/diagnose.ts';
import { forecastOf } from '../../src/forecast/outcome.ts';
import { foresee } from '../../src/forecast/predict.ts';
import type { Diagnosis, Finding } from '../../src/model/finding.ts';
import { outcomeOf } from '../../src/model/outcome.ts';
import {
  FORECAST,
  readRecordedForecast,
  readRecordedLook,
  recordingNames,
  rewound,
} from '../../test/unit/recorded-looks.ts';

/** One cause, by what waits for it: that stays the same when another controller is named. */
export interface Answer {
  key: string;
  code: string;
  /** `Deployment widget-system/widget-operator`. */
  who: string;
  certainty: string;
  isRoot: boolean;
  sentence: string;
}

/** What is said of one recording. Both sides of a comparison write these, each with its own engine. */
export interface Look {
  /** The name of the recording; `NAME, forecast` for the same before its deletion. */
  id: string;
  outcome: string;
  answers: Answer[];
  /** Every sentence, piece of evidence and remedy. */
  text: string;
  /** Why there is no answer. */
  error?: string;
}

/** Diagnoses recordings, and prints a line of JSON for each: `node look.ts [ID…]`. */
if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  const wanted = process.argv.slice(2);
  for (const name of recordingNames()) {
    const id = name.replace(FORECAST, '');
    if (wanted.length > 0 && !wanted.includes(id)) continue;
    for (const look of looksAt(name)) console.log(JSON.stringify(look));
  }
}

export function looksAt(name: string): Look[] {
  if (name.endsWith(FORECAST)) {
    const id = name.slice(0, -FORECAST.length);
    return [
      lookOf(`${id}, recorded forecast`, () => {
        const { now, isPodsFirst } = readRecordedForecast(id);
        const found = foresee(now, isPodsFirst);
        return { found, outcome: forecastOf(found) };
      }),
    ];
  }
  return [
    lookOf(name, () => {
      const { now, before } = readRecordedLook(name);
      const found = diagnose(now, before);
      return { found, outcome: outcomeOf(found) };
    }),
    lookOf(`${name}, forecast`, () => {
      const found = foresee(rewound(readRecordedLook(name)), false);
      return { found, outcome: forecastOf(found) };
    }),
  ];
}

function lookOf(id: string, examine: () => { found: Diagnosis; outcome: string }): Look {
  try {
    const { found, outcome } = examine();
    const { findings, rootCauses, deadlocks, notInspected } = found;
    const texts = findings.map((one) => [one.message, one.evidence, one.remedies, one.waitsFor]);
    const text = JSON.stringify([texts, deadlocks, notInspected]);
    const answers = findings.flatMap((finding) =>
      keysOf(finding, findings).map((key) =>
        answerOf(key, finding, rootCauses.includes(finding.id)),
      ),
    );
    return { id, outcome, answers, text };
  } catch (error) {
    return { id, outcome: 'error', answers: [], text: '', error: String(error).slice(0, 200) };
  }
}

/** Returns what waits for an owner, or the finding itself if it is another end of a chain. */
function keysOf(
  { id, code, finalizer = '', waitsFor }: Finding,
  all: readonly Finding[],
): string[] {
  if (!code.startsWith('owner-')) return waitsFor.length > 0 ? [] : [id];
  const waiting = all.filter((one) => one.waitsFor.includes(id)).map((one) => one.id);
  return waiting.length > 0 ? waiting : [`the namespace: ${finalizer}`];
}

function answerOf(
  key: string,
  { code, subject, certainty, message }: Finding,
  isRoot: boolean,
): Answer {
  const { kind, namespace, name } = subject;
  const who = `${kind} ${namespace === undefined ? '' : `${namespace}/`}${name}`;
  return { key, code, who, certainty: certainty ?? '', isRoot, sentence: `${who} ${message}` };
}
