import type { Fault, FaultRule } from '../../stub/fault-proxy.ts';
import { blackHole, edit, loseAnswer, reply, tooManyRequests } from '../../stub/faults.ts';
import { NAMESPACE } from '../bench.ts';
import type { FaultRow } from './row.ts';

/** The first GET of the namespace, and the DELETE: without them there is nothing to guard. */

const GET = new RegExp(`^GET ${NAMESPACE}$`);
const DELETE = new RegExp(`^DELETE ${NAMESPACE}$`);

function always(fault: string, what: Fault, says: RegExp, more: Partial<FaultRow> = {}): FaultRow {
  const rules = [{ request: GET, fault: what }];
  return { fault, phase: 'reading', rules, outcome: 'error', says, ...more };
}

/** A hiccup: the gate tries again and does its work. */
function passing(fault: string, what: Fault, times = 1): FaultRow {
  return {
    fault: `${fault}, and then works`,
    phase: 'reading',
    rules: [{ request: GET, times, fault: what }],
    outcome: 'stuck',
    says: /preview-pr-42 is stuck/,
    rootCauses: ['owner-missing'],
  };
}

/** The namespace is not terminating at the first `times` reads. */
function active(times: number): FaultRule {
  return {
    request: GET,
    times,
    fault: edit((namespace) => {
      const metadata = namespace['metadata'] as Record<string, unknown>;
      delete metadata['deletionTimestamp'];
    }),
  };
}

export const READING: readonly FaultRow[] = [
  always('the answer never comes', blackHole, /no answer within 15 s/),
  always(
    'the answer is larger than anything',
    reply(200, `{"kind":"${'x'.repeat(66 * 1024 * 1024)}"}`, 'application/json'),
    /the answer is larger than 64 MiB/,
  ),
  {
    ...always(
      'the error repeats what was sent, the token too',
      ({ headers, response }) => {
        response.writeHead(500, { 'content-type': 'text/plain' });
        response.end(`cannot forward: ${JSON.stringify(headers)}`);
      },
      /500 Internal Server Error: cannot forward/,
    ),
  },
  passing('the server is throttled for a second', tooManyRequests('1')),
  {
    fault: 'the answer to the deletion is lost',
    phase: 'reading',
    inputs: { delete: 'true' },
    rules: [active(1), { request: DELETE, fault: loseAnswer }],
    outcome: 'stuck',
    says: /preview-pr-42 is stuck/,
    mutations: [`DELETE ${NAMESPACE}`],
  },
];
