import { describe, expect, test } from 'vitest';
import type { Diagnosis, Finding, FindingCode } from '../../src/model/finding.ts';
import { faultOf } from '../../src/report/fault.ts';
import { toPlain } from '../../src/report/words.ts';
import { diagnosis, finding, heldSince } from '../stub/results.ts';

function cause(code: FindingCode, scope: Finding['scope'], name = 'x'): Finding {
  return finding({ code, scope, subject: { apiVersion: 'v1', kind: 'K', name }, message: 'is' });
}

const DEADLOCKED = cause('owner-missing', 'namespace');
const OWN_ADD_ON = cause('apiservice-unavailable', 'cluster');

describe('whose fault it is', () => {
  test.each<{ what: string; found: Diagnosis; answer: string | undefined; because?: string }>([
    {
      what: 'a cause in the cluster',
      found: diagnosis([cause('apiservice-unavailable', 'cluster')]),
      answer: 'Not caused by this change.',
      because: 'The cause lies in the cluster, outside of this namespace.',
    },
    {
      what: 'a cause in the cluster that holds others too',
      found: diagnosis([cause('apiservice-unavailable', 'cluster')], {
        alsoHeld: heldSince('a', 'b'),
      }),
      answer: 'Not caused by this change.',
      because:
        'The cause lies in the cluster, outside of this namespace. 2 other namespaces wait for the same: a and b.',
    },
    {
      what: 'many others',
      found: diagnosis([cause('discovery-failed', 'cluster')], {
        alsoHeld: heldSince(...'abcdefgh'),
      }),
      answer: 'Not caused by this change.',
      because:
        'The cause lies in the cluster, outside of this namespace. 8 other namespaces wait for the same: a, b, c, d, e and 3 more.',
    },
    {
      what: 'a cause in the namespace',
      found: diagnosis([cause('owner-failing', 'namespace')]),
      answer: 'The cause lies in this environment.',
    },
    {
      what: 'a deadlock',
      found: diagnosis([DEADLOCKED], { deadlocks: [[DEADLOCKED.id]] }),
      answer: "Caused by this environment's own teardown order.",
    },
    {
      what: 'an add-on of the whole cluster that lived in this namespace',
      found: diagnosis([OWN_ADD_ON], { deadlocks: [[OWN_ADD_ON.id]], alsoHeld: heldSince('a') }),
      answer: "Caused by this environment's own teardown order.",
      because: '1 other namespace waits for the same: a.',
    },
    {
      what: 'one cause here and one there',
      found: diagnosis([cause('owner-failing', 'namespace'), cause('discovery-failed', 'cluster')]),
      answer: 'Only in part caused by this change.',
      because: '1 of 2 causes lies in the cluster, outside of this namespace.',
    },
    {
      what: 'an owner that nobody knows',
      found: diagnosis([cause('owner-unknown', 'namespace')]),
      answer: 'Who should act could not be found out.',
    },
    {
      what: 'nothing that explains it',
      found: diagnosis([cause('unexplained', 'namespace')]),
      answer: undefined,
    },
    {
      what: 'a pod that takes its time',
      found: diagnosis([cause('pod-grace-period', 'namespace')]),
      answer: undefined,
    },
    { what: 'nothing at all', found: diagnosis([]), answer: undefined },
  ])('$what', ({ found, answer, because }) => {
    const fault = faultOf(found);
    expect(fault?.answer).toBe(answer);
    if (because !== undefined) expect(toPlain(fault?.because ?? [])).toBe(because);
  });
});
