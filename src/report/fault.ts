import type { Diagnosis, Finding } from '../diagnose/diagnosis.ts';
import { listWords, name, type Words } from './words.ts';

const MAX_NAMESPACES_NAMED = 5;

/** Whose fault it is, so that the author of a change knows whether to look at the change at all. */
export interface Fault {
  /** The answer in a few words, to be set in bold. */
  answer: string;
  /** What it rests on. */
  because: Words;
}

/** `undefined` when nothing was found that the question could be answered from. */
export function faultOf(diagnosis: Diagnosis): Fault | undefined {
  const causes = diagnosis.rootCauses.flatMap((id) => {
    const cause = diagnosis.findings.find((finding) => finding.id === id);
    return cause === undefined || isOpen(cause) ? [] : [cause];
  });
  if (causes.length === 0) return undefined;
  const inCluster = causes.filter((cause) => cause.scope === 'cluster').length;
  if (inCluster === 0) return ownFault(causes, diagnosis);
  const others = othersWords(diagnosis.alsoAffected);
  if (inCluster === causes.length) {
    return {
      answer: 'Not caused by this change.',
      because: ['The cause lies in the cluster, outside of this namespace.', ...others],
    };
  }
  return {
    answer: 'Only in part caused by this change.',
    because: [
      `${inCluster} of ${causes.length} causes lie in the cluster, outside of this namespace.`,
      ...others,
    ],
  };
}

/** Findings that say "no evidence" cannot blame anybody. */
function isOpen(cause: Finding): boolean {
  return cause.code === 'unexplained' || cause.code === 'content-deleting';
}

function ownFault(causes: readonly Finding[], diagnosis: Diagnosis): Fault {
  const isOrder = causes.some((cause) =>
    diagnosis.deadlocks.some((circle) => circle.includes(cause.id)),
  );
  return isOrder
    ? {
        answer: "Caused by this environment's own teardown order.",
        because: ['What had to clean up was deleted together with what it had to clean up.'],
      }
    : {
        answer: 'The cause lies in this environment.',
        because: ['Other namespaces are not affected by it.'],
      };
}

function othersWords(others: readonly string[]): Words {
  if (others.length === 0) return [];
  const many = others.length > 1;
  return [
    ` ${others.length} other ${many ? 'namespaces wait' : 'namespace waits'} for the same: `,
    ...listWords(
      others.map((other) => [name(other)]),
      MAX_NAMESPACES_NAMED,
    ),
    '.',
  ];
}
