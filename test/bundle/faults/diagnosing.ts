import type { Fault } from '../../stub/fault-proxy.ts';
import { blackHole, edit, failure, internalError, skewClock } from '../../stub/faults.ts';
import { NAME } from '../bench.ts';
import type { FaultRow } from './row.ts';

/** While it looks for what holds the namespace. */

const LISTS = new RegExp(`^GET /apis?/.*/namespaces/${NAME}/[a-z]+(\\?|$)`);
const CONFIG_MAPS = new RegExp(`^GET /api/v1/namespaces/${NAME}/configmaps\\?`);
const DISCOVERY = /^GET \/apis?(\?|$)/;
const GROUPS = /^GET \/apis(\?|$)/;
const DAY_MS = 86_400_000;

/** One type of many: the cause is found all the same, and the type is listed as not inspected. */
function oneType(
  fault: string,
  what: Fault,
  reason: RegExp,
  more: Partial<FaultRow> = {},
): FaultRow {
  return {
    fault: `${fault}, for one type`,
    phase: 'diagnosing',
    rules: [{ request: CONFIG_MAPS, fault: what }],
    outcome: 'stuck',
    says: /preview-pr-42 is stuck/,
    notInspected: new RegExp(`configmaps.*${reason.source}`),
    rootCauses: ['owner-missing'],
    ...more,
  };
}

function discovery(fault: string, what: Fault, more: Partial<FaultRow>): FaultRow {
  return {
    fault: `discovery: ${fault}`,
    phase: 'diagnosing',
    rules: [{ request: DISCOVERY, fault: what }],
    outcome: 'inconclusive',
    says: /preview-pr-42 is still there.*; the cause is unknown/,
    notInspected: /./,
    ...more,
  };
}

function harmless(fault: string, request: RegExp, what: Fault): FaultRow {
  return {
    fault,
    phase: 'diagnosing',
    rules: [{ request, fault: what }],
    outcome: 'stuck',
    says: /preview-pr-42 is stuck/,
    rootCauses: ['owner-missing'],
  };
}

export const DIAGNOSING: readonly FaultRow[] = [
  {
    fault: 'no list is ever answered',
    phase: 'diagnosing',
    rules: [{ request: LISTS, fault: blackHole }],
    outcome: 'inconclusive',
    says: /preview-pr-42 is still there.*; the cause is unknown/,
    notInspected: /configmaps/,
    // Each waits for 15 s: the examination ends in time because none is asked for again. Workloads and Events are
    // read twice: as content of the namespace, and as what may work for its objects.
    check: ({ proxy }) => {
      const asked = Map.groupBy(
        proxy.lines.filter((line) => LISTS.test(line)),
        (line) => line,
      );
      const twice = /\/(events|daemonsets|deployments)\?/;
      return [...asked].flatMap(([line, { length }]) =>
        length > (twice.test(line) ? 2 : 1) ? [line] : [],
      );
    },
  },
  oneType(
    'listing is forbidden',
    failure(403, 'Forbidden', 'cannot list resource "configmaps"'),
    /403|forbidden/i,
  ),
  {
    fault: 'everything fails once the timeout is over',
    phase: 'diagnosing',
    rules: [
      { request: /^GET (?!\/api\/v1\/namespaces[/?][^/]*$|\/version)/, fault: internalError },
    ],
    outcome: 'inconclusive',
    says: /preview-pr-42 is still there.*; the cause is unknown/,
    notInspected: /500/,
  },
  discovery(
    'marks a group as stale',
    edit(() => undefined),
    {
      rules: [
        {
          request: GROUPS,
          fault: edit((document) => {
            for (const item of document['items'] as Record<string, unknown>[]) {
              for (const version of item['versions'] as Record<string, unknown>[]) {
                const { name } = item['metadata'] as Record<string, unknown>;
                if (name !== 'batch') continue;
                version['freshness'] = 'Stale';
                version['resources'] = [];
              }
            }
          }),
        },
      ],
      outcome: 'stuck',
      says: /preview-pr-42 is stuck/,
      notInspected: /batch/,
      rootCauses: ['discovery-failed', 'owner-missing'],
    },
  ),
  harmless('the server is a day ahead', /./, skewClock(DAY_MS)),
];
