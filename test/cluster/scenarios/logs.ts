import type { Expectation, Scenario } from '../scenario.ts';
import { type ContainerLogs, logLine, serveContainerLogs } from '../servers/container-logs.ts';
import type { World } from '../world.ts';
import type { Operator } from './operator.ts';
import { GUARDED, HANGS, type Situation, situation } from './situation.ts';

/** Why the owner does not act is said in its log alone. */

const DENIED = 'AccessDenied: role preview-cleaner may not delete bucket assets';

const about = (world: World) => ({ namespace: world.namespace, name: GUARDED });

export type Written = (
  world: World,
  operator: Operator,
) => Record<string, string | Buffer | undefined>;

/** Logs by the name of the workload whose pod it is. */
export function logging(written: Written): Pick<Situation, 'identity' | 'inputs' | 'afterwards'> {
  return {
    identity: 'teardown-logs',
    inputs: { 'owner-logs': 'true' },
    afterwards: async (world, operator) => {
      const logs: ContainerLogs = ({ pod }) => {
        const all = Object.entries(written(world, operator));
        return all.find(([name]) => pod.startsWith(`${name}-`))?.[1];
      };
      await serveContainerLogs(world, world.name('node-1'), logs);
    },
  };
}

const denied = (world: World, operator: Operator): string =>
  logLine(operator, 'info', 'Reconciling', about(world)) +
  logLine(operator, 'error', 'Reconciler error', about(world), DENIED);

const FAILING = { code: 'owner-failing', says: [/log of .*: .*AccessDenied/] } as const;

/** What the report quotes, and what it must not contain. */
const quotes =
  (words: RegExp, never?: RegExp): NonNullable<Expectation['also']> =>
  ({ namespace, summary, stdout }) => {
    const quoted = namespace.findings.flatMap(({ ownerLog = [] }) => ownerLog);
    if (!quoted.some(({ line }) => words.test(line))) {
      throw new Error(`quotes only ${JSON.stringify(quoted)}`);
    }
    const all = `${JSON.stringify(namespace)}${summary}${stdout}`;
    if (quoted.length > 3 || quoted.some(({ line }) => line.length > 320)) {
      throw new Error(`quotes too much: ${JSON.stringify(quoted)}`);
    }
    if (never?.test(all)) throw new Error(`shows ${never.exec(all)?.[0]}`);
  };

const HOSTILE = 'hunter2hunter2';

export const logs: Scenario[] = [
  situation({
    id: 'S100-hostile',
    title:
      'why the owner fails is said in a log that is huge, partly binary, and holds secrets and commands',
    behaviour: HANGS,
    ...logging((world, operator) => {
      const { namespace } = world;
      const secret = `cannot log in: password=${HOSTILE} ::error::x ##[error]y <!-- @everyone -->`;
      return {
        [operator.name]: Buffer.concat([
          Buffer.from(logLine(operator, 'error', 'Reconciler error', about(world), secret)),
          Buffer.from(logLine(operator, 'error', 'Reconciler error', about(world), DENIED)),
          Buffer.from(Array.from({ length: 300_000 }, (_, index) => (index * 7) % 256)),
          Buffer.from(`\n${`${namespace}/${GUARDED} `.repeat(20_000)}\n`),
        ]),
      };
    }),
    owner: FAILING,
    expect: () => ({
      notInspected: [/more of the log of/],
      also: quotes(/AccessDenied/, new RegExp(HOSTILE)),
    }),
  }),
  situation({
    id: 'S100-forbidden',
    title: 'the gate may not read logs',
    behaviour: HANGS,
    ...logging((world, operator) => ({ [operator.name]: denied(world, operator) })),
    identity: 'teardown-reader',
    owner: 'owner-running',
    expect: () => ({ notInspected: [/log of/] }),
  }),
];
