import type { Fault } from '../../stub/fault-proxy.ts';
import { forbiddenNamespace, unauthorized, watchIsSilent, watchSends } from '../../stub/faults.ts';
import { NAME, NAMESPACE } from '../bench.ts';
import type { FaultRow } from './row.ts';

/** Between the first GET, which worked, and the verdict. */

const GET = new RegExp(`^GET ${NAMESPACE}$`);
const WATCH = /^GET \/api\/v1\/namespaces\?watch=1/;

/** From the second GET on. What else is read still explains the hang. */
function unreadable(fault: string, what: Fault, says: RegExp): FaultRow {
  return {
    fault,
    phase: 'waiting',
    rules: [{ request: GET, from: 2, fault: what }],
    outcome: 'inconclusive',
    says: new RegExp(`does not mean that it was deleted: .*${says.source}`),
    rootCauses: ['owner-missing'],
  };
}

function watching(fault: string, what: Fault, more: Partial<FaultRow> = {}): FaultRow {
  return {
    fault,
    phase: 'waiting',
    rules: [{ request: WATCH, fault: what }],
    outcome: 'stuck',
    says: /preview-pr-42 is stuck/,
    rootCauses: ['owner-missing'],
    check: ({ proxy }) => {
      const opened = proxy.lines.filter((line) => WATCH.test(line)).length;
      return opened <= 8 ? [] : [`watched ${opened} times within 2 s`];
    },
    ...more,
  };
}

export const WAITING: readonly FaultRow[] = [
  unreadable('the RoleBinding died with the namespace', forbiddenNamespace(NAME), /403 Forbidden/),
  {
    fault: 'the token expires after the first look',
    phase: 'waiting',
    inputs: { timeout: '6s' },
    during: async ({ proxy, step }) => {
      await step.says(/its controller|no controller that removes it/);
      proxy.add({ request: /./, fault: unauthorized });
    },
    outcome: 'inconclusive',
    says: /held by finalizer/,
    notInspected:
      /^namespace preview-pr-42: 401 Unauthorized.*; the report shows what was read at 20/,
    rootCauses: ['owner-missing'],
    check: ({ run: { outputs, summary, reportMarkdown = '' } }) =>
      [summary, reportMarkdown, outputs['blocking-finalizer'] ?? ''].flatMap((text, at) =>
        text.includes('cleanup') && (at > 1 || /401 Unauthorized/.test(text)) ? [] : [text],
      ),
  },
  watching('the watch is silent while the namespace goes', watchIsSilent, {
    outcome: 'deleted',
    says: /preview-pr-42 was deleted/,
    rootCauses: [],
    during: async ({ server, step }) => {
      await step.says(/waiting up to/);
      server.mutate((cluster) => cluster.removeNamespace(NAME));
    },
  }),
  watching('the watch sends a line without end', watchSends('x'.repeat(20 * 1024 * 1024))),
];
