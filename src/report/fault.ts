import type { Diagnosis, Finding, FindingCode } from '../model/finding.ts';
import { listWords, name, type Words } from './words.ts';

const MAX_NAMESPACES_NAMED = 5;

/** Whose fault it is, so that the author of a change knows whether to look at the change at all. */
export interface Fault {
  /** The answer in a few words, to be set in bold. */
  answer: string;
  /** What it rests on. */
  because: Words;
}

/** Nothing is wrong with these, or nothing is known: nobody can be blamed. */
const BLAMELESS: readonly FindingCode[] = ['unexplained', 'content-deleting', 'pod-grace-period'];

/** `undefined` when nothing was found that the question could be answered from. */
export function faultOf(diagnosis: Diagnosis): Fault | undefined {
  const roots = new Set(diagnosis.rootCauses);
  const causes = diagnosis.findings.filter(
    ({ id, code }) => roots.has(id) && !BLAMELESS.includes(code),
  );
  if (causes.length === 0) return undefined;
  const inCircle = new Set(diagnosis.deadlocks.flat());
  const deadlocked = causes.filter(({ id }) => inCircle.has(id));
  // What was deleted with the namespace was part of this environment, wherever it was registered.
  const outside = causes.filter((cause) => cause.scope === 'cluster' && !inCircle.has(cause.id));
  const others = othersWords(diagnosis.alsoHeld.map((held) => held.name));
  if (outside.length === causes.length) {
    return {
      answer: 'Not caused by this change.',
      because: ['The cause lies in the cluster, outside of this namespace.', ...others],
    };
  }
  if (outside.length > 0) {
    return {
      answer: 'Only in part caused by this change.',
      because: [
        `${outside.length} of ${causes.length} causes ${outside.length === 1 ? 'lies' : 'lie'} in the cluster, outside of this namespace.`,
        ...others,
      ],
    };
  }
  return {
    ...ownFault(causes, deadlocked),
    ...(others.length === 0 ? {} : { because: others.slice(1) }),
  };
}

function ownFault(causes: readonly Finding[], deadlocked: readonly Finding[]): Fault {
  if (deadlocked.length > 0) {
    return {
      answer: "Caused by this environment's own teardown order.",
      because: ['What had to clean up was deleted together with what it had to clean up.'],
    };
  }
  if (causes.every(({ code }) => code === 'owner-unknown')) {
    return {
      answer: 'Who should act could not be found out.',
      because: ['The evidence below says what was looked at.'],
    };
  }
  return {
    answer: 'The cause lies in this environment.',
    because: ['It is in this namespace, and holds no other one.'],
  };
}

function othersWords(others: readonly string[]): Words {
  if (others.length === 0) return [];
  const many = others.length > 1;
  return [
    ' ',
    `${others.length} other ${many ? 'namespaces wait' : 'namespace waits'} for the same: `,
    ...listWords(
      others.map((other) => [name(other)]),
      MAX_NAMESPACES_NAMED,
    ),
    '.',
  ];
}
