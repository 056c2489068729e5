import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { JsonObject } from '../../src/base/json.ts';
import { type ApiServer, startApiServer } from '../stub/api-server.ts';
import { type FaultProxy, type FaultRule, startFaultProxy } from '../stub/fault-proxy.ts';
import { blackHole, edit, loseAnswer, unauthorized, watchIsSilent } from '../stub/faults.ts';
import { type Github, startGithub } from '../stub/github.ts';
import { leaksIn, plantedSecret } from '../stub/planted.ts';
import { readRecording } from '../stub/recordings.ts';
import { type RunningStep, startStep } from '../stub/runner.ts';
import {
  Bench,
  everythingWritten,
  misdeeds,
  mutations,
  NAME,
  NAMESPACE,
  shownLines,
} from './bench.ts';

/** What an API server in trouble can do to the shipped bundle; the tests of the client have the rest. */

interface Row {
  fault: string;
  rules?: readonly FaultRule[];
  inputs?: Record<string, string>;
  /** What happens while the gate runs. */
  during?: (step: RunningStep, proxy: FaultProxy, server: ApiServer) => Promise<void>;
  outcome: string;
  says: RegExp;
  notInspected?: RegExp;
  mutations?: string[];
}

const GET = new RegExp(`^GET ${NAMESPACE}$`);
const LISTS = new RegExp(`^GET /apis?/.*/namespaces/${NAME}/[a-z]+(\\?|$)`);
const WATCH = /^GET \/api\/v1\/namespaces\?watch=1/;
const active = edit(({ metadata }) => {
  delete (metadata as JsonObject)['deletionTimestamp'];
});

const ROWS: readonly Row[] = [
  {
    fault: 'no list is ever answered',
    rules: [{ request: LISTS, fault: blackHole }],
    outcome: 'inconclusive',
    says: /preview-pr-42 is still there.*; the cause is unknown/,
    notInspected: /configmaps/,
  },
  {
    fault: 'the error repeats what was sent, the token too',
    rules: [
      {
        request: GET,
        fault: ({ headers, response }) => {
          response.writeHead(500, { 'content-type': 'text/plain' });
          response.end(`cannot forward: ${JSON.stringify(headers)}`);
        },
      },
    ],
    outcome: 'error',
    says: /500 Internal Server Error: cannot forward/,
  },
  {
    fault: 'the answer to the deletion is lost',
    inputs: { delete: 'true' },
    rules: [
      { request: GET, times: 1, fault: active },
      { request: new RegExp(`^DELETE ${NAMESPACE}$`), fault: loseAnswer },
    ],
    outcome: 'stuck',
    says: /preview-pr-42 is stuck/,
    mutations: [`DELETE ${NAMESPACE}`],
  },
  {
    fault: 'the token expires after the first look',
    inputs: { timeout: '6s' },
    during: async (step, proxy) => {
      await step.says(/its controller|no controller that removes it/);
      proxy.add({ request: /./, fault: unauthorized });
    },
    outcome: 'inconclusive',
    says: /^preview-pr-42 could not be read at the end; whether it was deleted is unknown: .* held by/,
    notInspected:
      /^namespace preview-pr-42: 401 Unauthorized.*; the report shows what was read at 20/,
  },
  {
    fault: 'the watch is silent while the namespace goes',
    rules: [{ request: WATCH, fault: watchIsSilent }],
    during: async (step, _, server) => {
      await step.says(/waiting up to/);
      server.mutate((cluster) => cluster.removeNamespace(NAME));
    },
    outcome: 'deleted',
    says: /preview-pr-42 was deleted/,
  },
];

const bench = new Bench();
let github: Github;
beforeAll(async () => {
  github = await startGithub();
});
afterAll(async () => {
  await github.close();
  bench.remove();
});

describe.concurrent('a fault', { timeout: 300_000 }, () => {
  test.each(ROWS.map((row, at) => ({ ...row, pull: 100 + at })))('$fault', async (row) => {
    const token = plantedSecret();
    const server = await startApiServer({ recording: readRecording('S4'), token });
    const proxy = await startFaultProxy({ target: server.url, rules: row.rules ?? [] });
    const kubeconfig = bench.kubeconfig({ server: proxy.url, user: { token } });
    const step = await startStep({
      inputs: { namespace: NAME, timeout: '2s', comment: 'always', kubeconfig, ...row.inputs },
      event: { name: 'pull_request', payload: { pull_request: { number: row.pull } } },
      githubApiUrl: github.url,
      token: github.token,
      env: { RUNNER_DEBUG: '1' },
      limitMs: 150_000,
    });
    await Promise.all([step.ended, row.during?.(step, proxy, server)]);
    const run = await step.ended;
    await Promise.all([proxy.close(), server.close()]);

    expect(run.outputs['outcome'], run.stdout).toBe(row.outcome);
    expect(run.exitCode).toBe(row.outcome === 'deleted' ? 0 : 1);
    expect(shownLines(run)).toContainEqual(expect.stringMatching(row.says));
    expect(misdeeds(run, [github.token])).toEqual([]);
    expect(leaksIn(everythingWritten(run, github, row.pull), [github.token])).toEqual([]);
    expect(mutations(server)).toEqual(row.mutations ?? []);
    const [namespace] = run.report?.namespaces ?? [];
    const unread = namespace?.notInspected.map(({ what, reason }) => `${what}: ${reason}`) ?? [];
    expect(unread.join('\n')).toMatch(new RegExp(row.notInspected ?? '', 'm'));
  });
});
