import type { JsonObject } from '../../src/base/json.ts';
import { waitUntil } from '../../test/cluster/wait-until.ts';
import { type Bench, runOnce } from '../bench.ts';
import { differences, explanationOf, mustExplain } from '../explanation.ts';
import type { LimitRun } from '../results.ts';
import { FINALIZER } from '../situations.ts';
import { explainThroughProxy } from '../through-proxy.ts';
import { IDENTITY } from '../tools.ts';

const DELAY_MS = 100;
const SEED = 8;
const REFUSED_SHARE = 0.2;
const MOST_IN_FLIGHT = 6;

/** A slow network, and servers that turn requests away: the explanation must stay the same. */
export async function measureLimits(bench: Bench, namespace: string): Promise<LimitRun[]> {
  const command = bench.tools.gate(bench.kubeconfig, [namespace, '--now', '--format', 'json']);
  const { ended: free } = await runOnce(bench, command);
  mustExplain(free, FINALIZER);
  const expected = explanationOf(free);

  bench.say('limits: delay');
  const slow = await explainThroughProxy(bench, namespace, { delayMs: DELAY_MS });
  bench.say('limits: refused at random');
  const random = seededRandom(SEED);
  const refused = await explainThroughProxy(bench, namespace, {
    refuses: (inFlight) => inFlight > MOST_IN_FLIGHT || random() < REFUSED_SHARE,
  });
  bench.say('limits: priority and fairness');
  const squeezed = await withFewSeats(bench, () => runOnce(bench, command));
  const throughProxy = ({ ended, requests }: typeof slow): Omit<LimitRun, 'limit' | 'what'> => ({
    wallMs: Math.round(ended.wallMs),
    requests: requests.length,
    refused: requests.filter(({ refused: was }) => was).length,
    differences: differences(expected, explanationOf(ended)),
  });
  return [
    {
      limit: 'delay',
      what: `${DELAY_MS} ms more for every request`,
      ...throughProxy(slow),
    },
    {
      limit: 'refused-at-random',
      what: `429 for ${REFUSED_SHARE * 100} % of the requests, and for all above ${MOST_IN_FLIGHT} at once`,
      ...throughProxy(refused),
    },
    {
      limit: 'refused-by-priority-and-fairness',
      what: "the API server's own 429s: a priority level with few seats and no queue",
      wallMs: Math.round(squeezed.ended.wallMs),
      requests: squeezed.requests.length,
      refused: squeezed.requests.filter(({ status }) => status === 429).length,
      differences: differences(expected, explanationOf(squeezed.ended)),
    },
  ];
}

/** Mulberry32: the same requests are refused in every run, as far as their order is the same. */
function seededRandom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

const LEVEL = 'bench-few-seats';

/** The smallest share of the server's seats; what comes when they are taken is refused. */
const FEW_SEATS: JsonObject[] = [
  {
    apiVersion: 'flowcontrol.apiserver.k8s.io/v1',
    kind: 'PriorityLevelConfiguration',
    metadata: { name: LEVEL },
    spec: {
      type: 'Limited',
      limited: {
        nominalConcurrencyShares: 1,
        lendablePercent: 0,
        borrowingLimitPercent: 0,
        limitResponse: { type: 'Reject' },
      },
    },
  },
  {
    apiVersion: 'flowcontrol.apiserver.k8s.io/v1',
    kind: 'FlowSchema',
    metadata: { name: LEVEL },
    spec: {
      priorityLevelConfiguration: { name: LEVEL },
      matchingPrecedence: 2, // 1 is reserved for "exempt"
      distinguisherMethod: { type: 'ByUser' },
      rules: [
        {
          subjects: [{ kind: 'User', user: { name: IDENTITY } }],
          resourceRules: [
            {
              verbs: ['*'],
              apiGroups: ['*'],
              resources: ['*'],
              namespaces: ['*'],
              clusterScope: true,
            },
          ],
          nonResourceRules: [{ verbs: ['*'], nonResourceURLs: ['*'] }],
        },
      ],
    },
  },
];

async function withFewSeats<T>(bench: Bench, work: () => Promise<T>): Promise<T> {
  const { admin } = bench.plane;
  for (const object of FEW_SEATS) await admin.create(object);
  const isInForce = async (): Promise<boolean> => {
    const { text } = await admin.call('GET', '/metrics');
    const name = 'apiserver_flowcontrol_nominal_limit_seats';
    return text.includes(`${name}{priority_level="${LEVEL}"}`);
  };
  await waitUntil('the priority level is in force', isInForce);
  try {
    return await work();
  } finally {
    for (const kind of ['FlowSchema', 'PriorityLevelConfiguration']) {
      await admin.delete({ apiVersion: 'flowcontrol.apiserver.k8s.io/v1', kind, name: LEVEL });
    }
  }
}
