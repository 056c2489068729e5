import { formatDuration } from '../base/time.ts';
import type { Diagnosis } from '../model/finding.ts';
import type { NamespaceResult, RunResult } from '../model/result.ts';
import { diagnosisWithAges, withAges } from './ages.ts';
import { type Chain, chainsOf } from './chains.ts';
import { type Fault, faultOf } from './fault.ts';
import { headlineWords, markOf } from './headline.ts';
import { grantLines, notSeenSentences, queuedSentence } from './not-seen.ts';
import { deleteFirst, type RemedyWords, remediesOf } from './remedies.ts';
import { chainSentences } from './sentences.ts';
import { subjectWords } from './subjects.ts';
import { termsOf } from './terms.ts';
import { formatCount, listWords, name, type Words } from './words.ts';

const MAX_OTHERS_NAMED = 3;
const MAX_RULES = 20;

/**
 * What is told about one namespace, in the order in which it is told, before any rendering: outcome,
 * why, whose fault, what to do, what could not be seen. Every rendering says the same in its own form.
 */
export interface Narrative {
  mark: string;
  headline: Words;
  whyTitle: string;
  /** One entry per root cause, each a sentence or more that follows its chain. */
  why: Words[];
  chains: Chain[];
  fault: Fault | undefined;
  remedies: RemedyWords[];
  /** "Secrets and Widgets: 403 Forbidden for …", one per reason. */
  notSeen: Words[];
  /** RBAC rules that would show it, one line of YAML each. */
  grants: string[];
  /** How much waits behind the blockers. */
  queued: Words | undefined;
  /** What was found, with ages instead of bare timestamps. */
  diagnosis: Diagnosis | undefined;
  /** Words of the trade that the text above uses, explained. */
  terms: Words[];
}

export function narrate(namespace: NamespaceResult, run: RunResult): Narrative {
  const base = {
    mark: markOf(namespace.outcome, namespace.verdict),
    whyTitle: 'Why',
    headline: headlineWords(namespace, run),
  };
  if (namespace.diagnosis === undefined) return { ...base, ...untold(namespace) };
  const diagnosis = diagnosisWithAges(namespace.diagnosis, run.finishedAt);
  const chains = chainsOf(diagnosis);
  const told = {
    ...base,
    diagnosis,
    why: chains.map((chain) => causeSentences(chain, namespace.name)),
    chains,
    fault: faultOf(diagnosis),
    notSeen: notSeenSentences(diagnosis.notInspected),
    grants: grantLines(diagnosis.notInspected),
    terms: termsOf(chains),
  };
  if (namespace.outcome === 'forced') {
    // Looked at before anything was forced; there is nothing left to do about it.
    return { ...told, whyTitle: 'What held it until then', remedies: [], queued: undefined };
  }
  return {
    ...told,
    why: [...told.why, ...movementSentences(diagnosis, run), ...nothingFound(diagnosis)],
    remedies: [
      ...patience(namespace, run, diagnosis),
      ...remediesOf(diagnosis, chains),
      ...letLook(told.grants, diagnosis),
    ],
    queued: queuedSentence(diagnosis.queued),
  };
}

function causeSentences(chain: Chain, home: string): Words {
  const sentences = chainSentences(chain, home);
  if (chain.others.length === 0) return sentences;
  const others = listWords(
    chain.others.map((other) => subjectWords(other.subject, home)),
    MAX_OTHERS_NAMED,
  );
  return [
    ...sentences,
    ' ',
    ...others,
    chain.others.length === 1 ? ' waits' : ' wait',
    ' for the same.',
  ];
}

function movementSentences({ movement, findings }: Diagnosis, run: RunResult): Words[] {
  switch (movement.kind) {
    case 'shrinking':
      if (findings.some(({ code }) => code === 'content-deleting')) return [];
      return [
        [
          `Its content is still going away: ${formatCount(movement.before)} objects, then ${formatCount(movement.now)}, ${formatDuration(movement.comparedMs)} apart.`,
        ],
      ];
    case 'grace-period': {
      if (findings.some(({ code }) => code === 'pod-grace-period')) return [];
      return [[`A pod may take until ${withAges(movement.until, run.finishedAt)} to end.`]];
    }
    case 'starting':
      return [['Kubernetes begins 5 s after the request, and has not begun yet.']];
    case 'retrying':
      if (findings.some(({ code }) => code === 'content-deleting')) return [];
      return [['What Kubernetes complained about is mended; it tries again within a minute.']];
    case 'none':
    case 'unknown':
      return [];
  }
}

function nothingFound({ rootCauses, notInspected }: Diagnosis): Words[] {
  if (rootCauses.length > 0 || notInspected.length === 0) return [];
  return [['Nothing that could be read holds it, but not everything could be read.']];
}

/** Where nothing was found, seeing more comes first; where something was, it is an aside. */
function letLook(grants: readonly string[], { rootCauses }: Diagnosis): RemedyWords[] {
  if (grants.length === 0) return [];
  const text: Words = ['Let the gate see more: add these rules to the role of its identity'];
  return rootCauses.length > 0 ? [] : [{ text, rules: grants.slice(0, MAX_RULES) }];
}

/** What still moves may only need time. */
function patience(
  namespace: NamespaceResult,
  run: RunResult,
  { findings }: Diagnosis,
): RemedyWords[] {
  const isSaid = findings.some(({ remedies }) =>
    remedies.some(({ text }) => /more time/.test(text)),
  );
  if (namespace.outcome !== 'progressing' || isSaid) return [];
  const now = run.timeoutMs > 0 ? ` (now ${formatDuration(run.timeoutMs)})` : '';
  return [
    {
      text: [
        'Give it more time: raise the input ',
        name('timeout'),
        `${now}, or run the gate again.`,
      ],
    },
  ];
}

type Told = Omit<Narrative, 'mark' | 'headline' | 'whyTitle'>;

const NOTHING: Told = {
  diagnosis: undefined,
  why: [],
  chains: [],
  fault: undefined,
  remedies: [],
  notSeen: [],
  grants: [],
  queued: undefined,
  terms: [],
};

function untold(namespace: NamespaceResult): Told {
  switch (namespace.outcome) {
    case 'not-terminating':
      return {
        ...NOTHING,
        why: [['It exists and is not being deleted, so waiting for its end has no point.']],
        remedies: [deleteFirst(namespace.name)],
      };
    case 'recreated':
      return {
        ...NOTHING,
        why: [
          [
            'Somebody created it again while the old one was going away: a deploy that ran at the same time, or a controller that owns it.',
          ],
        ],
      };
    case 'not-found':
      return namespace.verdict === 'fail' ? notThere() : NOTHING;
    case 'stuck':
    case 'progressing':
    case 'inconclusive':
      return { ...NOTHING, why: [['The cluster was not looked at, so there is no explanation.']] };
    case 'clear':
    case 'would-hang':
    case 'deleted':
    case 'forced':
    case 'cancelled':
      return NOTHING;
  }
}

function notThere(): Told {
  return {
    ...NOTHING,
    why: [
      [
        'No namespace of this name was there at the start: it was deleted before, its name is misspelt, or this is another cluster.',
      ],
    ],
    remedies: [
      {
        text: [
          'Check name and cluster; where a missing namespace is fine, set ',
          name('if-not-found: ok'),
        ],
      },
    ],
  };
}
