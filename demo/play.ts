import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { styleText } from 'node:util';
import type { JsonObject } from '../src/base/json.ts';
import { type ApiServer, startApiServer } from '../test/stub/api-server.ts';
import { type Github, startGithub } from '../test/stub/github.ts';
import type { Recording } from '../test/stub/recording.ts';
import { readRecording, recordedAt } from '../test/stub/recordings.ts';
import { REPOSITORY_NAME, type StepRun, startStep } from '../test/stub/runner.ts';
import { fix } from './cure.ts';
import { commentPage, summaryPage } from './pages.ts';
import { StepView } from './step-view.ts';

const PULL_REQUEST = { number: 42, title: 'Show prices with taxes' };
const TIMEOUT = '8s';

type Print = (line: string) => void;

/** Both acts; the pages go to the folder `out`. Returns what should have been shown and was not. */
export async function play(scenario: string, out: string, print: Print): Promise<string[]> {
  // "Recorded just now": the reader compares the times in the reports with a clock.
  const recording = recordedAt(readRecording(scenario), new Date());
  const folder = await mkdtemp(join(tmpdir(), 'teardown-demo-'));
  const [cluster, github] = await Promise.all([startApiServer({ recording }), startGithub()]);
  try {
    await mkdir(out, { recursive: true });
    const theatre = { cluster, github, recording, folder, out, print };
    introduce(recording, print);
    const first = await firstAct(theatre);
    const second = await secondAct(theatre);
    closing(out, print);
    return [...first, ...second];
  } finally {
    await Promise.all([cluster.close(), github.close()]);
    await rm(folder, { recursive: true, force: true });
  }
}

interface Theatre {
  cluster: ApiServer;
  github: Github;
  recording: Recording;
  folder: string;
  out: string;
  print: Print;
}

function introduce({ namespace, title, version, scenario }: Recording, print: Print): void {
  print('');
  print(
    `Pull request #${PULL_REQUEST.number} was closed. Its workflow has deleted the namespace of its`,
  );
  print(`preview environment, ${namespace}, and now runs the gate.`);
  print(
    styleText(
      'dim',
      `The cluster is a recording of a real Kubernetes ${String(version['gitVersion'])} API server,`,
    ),
  );
  print(styleText('dim', `scenario ${scenario}: ${title}.`));
  print(styleText('dim', 'It takes about half a minute, and a minute on a busy machine.'));
}

/** Runs the gate on a hang that stays: it waits until the timeout and explains the hang. */
async function firstAct(theatre: Theatre): Promise<string[]> {
  const { github, out, print } = theatre;
  heading(print, 'Act 1', 'the namespace hangs');
  const step = await runStep(theatre, 812, async () => undefined);
  const [comment, ...others] = github.commentsOn(PULL_REQUEST.number);
  await save(
    out,
    'summary.html',
    summaryPage({ workflow: 'preview', number: 812, job: 'teardown' }, step.summary),
  );
  if (comment !== undefined)
    await save(out, 'comment.html', commentPage(PULL_REQUEST, comment.body, false));
  return unmet([
    ['the step fails', step.exitCode === 1],
    ['the gate finds a root cause', (step.report?.namespaces[0]?.rootCauses.length ?? 0) > 0],
    ['the step writes a summary', step.summary !== ''],
    ['the pull request gets one comment', comment !== undefined && others.length === 0],
  ]);
}

/** Fixes the cause while the gate of the next run waits. */
async function secondAct(theatre: Theatre): Promise<string[]> {
  const { cluster, github, out, print, recording } = theatre;
  const { namespace } = recording;
  heading(print, 'Act 2', 'the cause is fixed, and the workflow runs again');
  const step = await runStep(theatre, 813, async (ended) => {
    await Promise.race([ended, cluster.mutate(({ watches }) => watches.untilOpen())]);
    await sleep(1_500);
    for (const line of cluster.mutate((served) => fix(served, namespace))) beside(print, line);
    await sleep(1_000);
    beside(print, 'Kubernetes finishes the deletion');
    cluster.mutate((served) => served.removeNamespace(namespace));
  });
  const [comment, ...others] = github.commentsOn(PULL_REQUEST.number);
  if (comment !== undefined) {
    await save(out, 'comment-green.html', commentPage(PULL_REQUEST, comment.body, true));
  }
  return unmet([
    ['the step passes', step.exitCode === 0 && step.outputs['outcome'] === 'deleted'],
    ['the same comment turns green', comment?.body.includes('✅') === true && others.length === 0],
  ]);
}

/** The gate as the runner starts it; what happens meanwhile goes on beside it. */
async function runStep(
  { cluster, github, recording, folder, print }: Theatre,
  runNumber: number,
  meanwhile: (ended: Promise<StepRun>) => Promise<void>,
): Promise<StepRun> {
  const view = new StepView(print);
  const inputs = {
    namespace: recording.namespace,
    timeout: TIMEOUT,
    kubeconfig: await cluster.kubeconfig(join(folder, 'kubeconfig')),
  };
  view.start(inputs);
  const step = await startStep({
    inputs,
    event: { name: 'pull_request', payload: closedPullRequest() },
    githubApiUrl: github.url,
    token: github.token,
    runNumber,
    onLine: (line) => view.line(line),
  });
  const [run] = await Promise.all([step.ended, meanwhile(step.ended)]);
  view.end(run);
  return run;
}

function closedPullRequest(): JsonObject {
  const repo = { full_name: REPOSITORY_NAME };
  return {
    action: 'closed',
    pull_request: {
      ...PULL_REQUEST,
      state: 'closed',
      merged: true,
      head: { ref: 'prices-with-taxes', sha: '9f3c2e1a7b5d4c6e8f0a1b2c3d4e5f6a7b8c9d0e', repo },
      base: { ref: 'main', repo },
    },
    repository: repo,
  };
}

function closing(out: string, print: Print): void {
  const show = (file: string, what: string): void => {
    const path = relative(process.cwd(), join(out, file));
    print(`  ${(path.startsWith('..') ? join(out, file) : path).padEnd(30)} ${what}`);
  };
  heading(print, 'Look at', 'three pages, as GitHub shows them');
  show('summary.html', 'the job summary of the failed run: the same story with all evidence');
  show('comment.html', 'the comment on the pull request: read "Cause" and "Fix"');
  show(
    'comment-green.html',
    'the same comment after the second run: what is left of it when all is well',
  );
  print('');
}

function heading(print: Print, title: string, text: string): void {
  print('');
  print(`${styleText('bold', title)}: ${text}`);
  print('');
}

/** What happens in the cluster while the step runs. */
function beside(print: Print, line: string): void {
  print(styleText('green', `  ★ in the cluster: ${line}`));
}

async function save(out: string, file: string, page: string): Promise<void> {
  await writeFile(join(out, file), page);
}

function unmet(expected: readonly [string, boolean][]): string[] {
  return expected.filter(([, holds]) => !holds).map(([what]) => what);
}
