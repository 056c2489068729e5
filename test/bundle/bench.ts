import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { OUTPUTS } from '../../src/outputs.ts';
import type { ApiServer } from '../stub/api-server.ts';
import type { Github } from '../stub/github.ts';
import { type Access, kubeconfigText } from '../stub/kubeconfig-text.ts';
import { leaksIn, withoutMasks } from '../stub/planted.ts';
import type { StepRun } from '../stub/runner.ts';
import { parseLog } from '../stub/step-log.ts';

/** What the tests of the bundle share: kubeconfigs, and what is true of every run. */

export const NAME = 'preview-pr-42';
export const NAMESPACE = `/api/v1/namespaces/${NAME}`;

/** A folder that goes with the process. */
export class Bench {
  readonly folder = mkdtempSync(join(tmpdir(), 'gate-bench-'));
  #files = 0;

  /** Writes a file and returns its path. */
  file(content: string, options: { mode?: number; name?: string } = {}): string {
    const path = join(this.folder, options.name ?? `file-${++this.#files}`);
    writeFileSync(path, content, { mode: options.mode ?? 0o600 });
    return path;
  }

  /** A named pipe that nothing is written to. */
  pipe(): string {
    const path = join(this.folder, `pipe-${++this.#files}`);
    execFileSync('mkfifo', [path]);
    return path;
  }

  kubeconfig(access: Access): string {
    return this.file(kubeconfigText(access));
  }

  remove(): void {
    rmSync(this.folder, { recursive: true, force: true });
  }
}

/** Errors, warnings and notices, as the run's page shows them. */
export function annotations(run: StepRun, kind?: 'error' | 'warning' | 'notice'): string[] {
  return parseLog(run.stdout).flatMap((line) =>
    (line.kind === 'error' || line.kind === 'warning' || line.kind === 'notice') &&
    (kind === undefined || line.kind === kind)
      ? [line.text]
      : [],
  );
}

/** What a person reads in the log: without commands that only the runner sees. */
export function shownLines(run: Pick<StepRun, 'stdout' | 'stderr'>): string[] {
  return parseLog(`${run.stdout}\n${run.stderr}`).flatMap((line) =>
    line.kind === 'endgroup' || line.kind === 'command' || line.kind === 'debug' ? [] : [line.text],
  );
}

/** Everything that leaves the process, except what only tells the runner what to hide. */
export function everythingWritten(run: StepRun, github?: Github, pull?: number): string {
  const comments = pull === undefined ? [] : (github?.commentsOn(pull) ?? []);
  return [
    withoutMasks(run.stdout),
    run.stderr,
    run.summary,
    JSON.stringify([run.outputs, run.state, run.environment]),
    JSON.stringify(run.report ?? {}),
    run.reportMarkdown ?? '',
    ...comments.map(({ body }) => body),
  ].join('\n');
}

/** What no run may ever do, as a list of what this one did. */
export function misdeeds(run: StepRun, secrets: readonly string[] = []): string[] {
  const shown = shownLines(run);
  const missing = Object.keys(OUTPUTS).filter((name) => run.outputs[name] === undefined);
  return [
    ...(run.signal === null ? [] : [`ended by ${run.signal}`]),
    ...missing.map((name) => `output "${name}" is not set`),
    ...shown.filter((line) => /^\s+at \S+ |\bat .+:\d+:\d+\)?$/.test(line)),
    ...shown.filter((line) =>
      /\binternal error: |unhandled|\[object Object\]|\bundefined\b/.test(line),
    ),
    ...run.stderr.split('\n').filter((line) => line !== ''),
    ...leaksIn(everythingWritten(run), secrets).map((leak) => `leaked: ${leak}`),
  ];
}

/** Requests that would change the cluster; asking about oneself and dry runs do not. */
export function mutations(server: ApiServer): string[] {
  return server.requests
    .filter(({ method, path }) => {
      const isHarmless = /dryRun=All|\/selfsubject\w+reviews/.test(path);
      return method !== 'GET' && !isHarmless;
    })
    .map(({ method, path }) => `${method} ${path}`);
}
