import type { Movement } from '../diagnose/diagnosis.ts';
import { formatDuration } from '../duration.ts';
import { type Chain, chainsOf } from './chains.ts';
import { type Fault, faultOf } from './fault.ts';
import { headlineWords, MARKS } from './headline.ts';
import { grantLines, notSeenSentences, queuedSentence } from './not-seen.ts';
import { deleteFirst, type RemedyWords, remediesOf } from './remedies.ts';
import type { NamespaceResult, RunResult } from './report.ts';
import { chainSentences } from './sentences.ts';
import { termsOf } from './terms.ts';
import { formatCount, said, type Words } from './words.ts';

/**
 * What is told about one namespace, in the order in which it is told, before any rendering: outcome,
 * why, whose fault, what to do, what could not be seen. Every rendering says the same in its own form.
 */
export interface Narrative {
  mark: string;
  headline: Words;
  /** One entry per root cause, each a sentence or more that follows its chain. */
  why: Words[];
  chains: Chain[];
  fault: Fault | undefined;
  remedies: RemedyWords[];
  /** "Secrets and Widgets: 403 Forbidden for …", one per reason. */
  notSeen: Words[];
  /** RBAC rules that would show it. */
  grants: string[];
  /** How much waits behind the blockers. */
  queued: Words | undefined;
  /** Words of the trade that the text above uses, explained. */
  terms: Words[];
}

export function narrate(namespace: NamespaceResult, run: RunResult): Narrative {
  const base = {
    mark: MARKS[namespace.outcome],
    headline: headlineWords(namespace, run),
  };
  const { diagnosis } = namespace;
  if (diagnosis === undefined) return { ...base, ...untold(namespace) };
  const chains = chainsOf(diagnosis);
  const why = [
    ...chains.map((chain) => causeSentences(chain, namespace.name)),
    ...movementSentences(diagnosis.movement),
  ];
  return {
    ...base,
    why,
    chains,
    fault: faultOf(diagnosis),
    remedies: remediesOf(diagnosis, chains),
    notSeen: notSeenSentences(diagnosis.notInspected),
    grants: grantLines(diagnosis.notInspected),
    queued: queuedSentence(diagnosis.queued),
    terms: termsOf(chains),
  };
}

function causeSentences(chain: Chain, home: string): Words {
  const more = chain.alsoThroughHere;
  return [
    ...chainSentences(chain, home),
    ...(more === 0
      ? []
      : [` ${formatCount(more)} more ${more === 1 ? 'thing waits' : 'things wait'} for the same.`]),
  ];
}

function movementSentences(movement: Movement): Words[] {
  switch (movement.kind) {
    case 'shrinking':
      return [
        [
          `Its content is still shrinking: ${formatCount(movement.before)} objects, then ${formatCount(movement.now)}, ${formatDuration(movement.comparedMs)} apart. A longer timeout may be all that it needs.`,
        ],
      ];
    case 'grace-period':
      return [['A pod may still take until ', said(movement.until), ' to end (its grace period).']];
    case 'none':
    case 'unknown':
      return [];
  }
}

type Told = Omit<Narrative, 'mark' | 'headline'>;

const NOTHING: Told = {
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
    case 'stuck':
    case 'progressing':
    case 'inconclusive':
      return { ...NOTHING, why: [['The cluster was not looked at, so there is no explanation.']] };
    case 'deleted':
    case 'not-found':
    case 'forced':
    case 'cancelled':
      return NOTHING;
  }
}
