import type { Fault, FaultRule } from '../../stub/fault-proxy.ts';
import {
  blackHole,
  edit,
  failure,
  html,
  loseAnswer,
  notFoundNamespace,
  reply,
  tooManyRequests,
  unauthorized,
} from '../../stub/faults.ts';
import { NAME, NAMESPACE } from '../bench.ts';
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

function refused(fault: string, status: number, reason: string): FaultRow {
  return {
    fault,
    phase: 'reading',
    inputs: { delete: 'true' },
    rules: [active(9), { request: DELETE, fault: failure(status, reason, 'no deletion today') }],
    outcome: 'not-terminating',
    says: new RegExp(`The namespace was not deleted: ${status} ${reason}`),
  };
}

export const READING: readonly FaultRow[] = [
  always('the answer never comes', blackHole, /no answer within 15 s/),
  always(
    'the answer is larger than anything',
    reply(200, `{"kind":"${'x'.repeat(66 * 1024 * 1024)}"}`, 'application/json'),
    /the answer is larger than 64 MiB/,
  ),
  always('a login page comes with 200', html(200), /did not answer like .*\(200, text\/html\)/),
  always('the token is refused', unauthorized, /401 Unauthorized/),
  {
    ...always('the name does not exist', notFoundNamespace(NAME), /preview-pr-42/),
    outcome: 'not-found',
  },
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
  refused('the deletion is forbidden', 403, 'Forbidden'),
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
