import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { JsonObject } from '../../src/base/json.ts';
import { waitUntil } from '../cluster/wait-until.ts';
import type { GiteaApi } from './api.ts';

export interface Run extends JsonObject {
  id: number;
  run_number: number;
  event: string;
  status: string;
  conclusion: string;
  path: string;
  html_url: string;
}

export interface Job extends JsonObject {
  id: number;
  name: string;
  status: string;
  conclusion: string;
}

export interface Comment extends JsonObject {
  id: number;
  body: string;
  user: { login: string };
}

export interface Pull extends JsonObject {
  number: number;
  merge_commit_sha: string | null;
  head: { ref: string; label: string; sha: string };
}

/** A repository as one of its users sees it. */
export class Repository {
  readonly api: GiteaApi;
  /** "owner/name". */
  readonly fullName: string;

  constructor(api: GiteaApi, fullName: string) {
    this.api = api;
    this.fullName = fullName;
  }

  static async create(api: GiteaApi, name: string): Promise<Repository> {
    const { full_name } = await api.post<{ full_name: string }>('/user/repos', {
      name,
      auto_init: true,
      default_branch: 'main',
    });
    return new Repository(api, full_name);
  }

  /** The same repository as somebody else. */
  as(api: GiteaApi): Repository {
    return new Repository(api, this.fullName);
  }

  get path(): string {
    return `/repos/${this.fullName}`;
  }

  /** One commit with these new files; its full SHA. */
  async commit(
    files: Readonly<Record<string, string | Buffer>>,
    branch: { on?: string; into?: string } = {},
  ): Promise<string> {
    const { commit } = await this.api.post<{ commit: { sha: string } }>(`${this.path}/contents`, {
      branch: branch.on ?? 'main',
      ...(branch.into === undefined ? {} : { new_branch: branch.into }),
      message: `Change ${Object.keys(files).join(', ')}`,
      files: Object.entries(files).map(([path, content]) => ({
        operation: 'create',
        path,
        content: Buffer.from(content).toString('base64'),
      })),
    });
    return commit.sha;
  }

  async secret(name: string, data: string): Promise<void> {
    await this.api.call('PUT', `${this.path}/actions/secrets/${name}`, { data });
  }

  /** A pull request from a new branch with one new file. */
  async openPull(branch: string): Promise<Pull> {
    await this.commit({ [`changes/${branch}.txt`]: branch }, { into: branch });
    return this.requestPull(branch);
  }

  requestPull(head: string, base = 'main'): Promise<Pull> {
    return this.api.post<Pull>(`${this.path}/pulls`, { title: `Add ${head}`, head, base });
  }

  async closePull(number: number): Promise<void> {
    await this.api.call('PATCH', `${this.path}/pulls/${number}`, { state: 'closed' });
  }

  async reopenPull(number: number): Promise<void> {
    await this.api.call('PATCH', `${this.path}/pulls/${number}`, { state: 'open' });
  }

  async mergePull(number: number, more: JsonObject = {}): Promise<void> {
    // Gitea first looks, in the background, whether it can be merged.
    await waitUntil(`pull request ${number} can be merged`, async () => {
      const answer = await this.api.ask('POST', `${this.path}/pulls/${number}/merge`, {
        Do: 'merge',
        ...more,
      });
      if (answer.status !== 405 && answer.status >= 400) {
        throw new Error(`merge: ${answer.status} ${JSON.stringify(answer.body)}`);
      }
      return answer.status < 400;
    });
  }

  async deleteBranch(branch: string): Promise<void> {
    await this.api.call('DELETE', `${this.path}/branches/${branch}`);
  }

  async dispatch(workflow: string, ref: string): Promise<void> {
    await this.api.post(`${this.path}/actions/workflows/${workflow}/dispatches`, { ref });
  }

  comments(number: number): Promise<Comment[]> {
    return this.api.get<Comment[]>(`${this.path}/issues/${number}/comments`);
  }

  async runs(): Promise<Run[]> {
    const { workflow_runs } = await this.api.get<{ workflow_runs: Run[] }>(
      `${this.path}/actions/runs?limit=50`,
    );
    return workflow_runs.sort((a, b) => a.id - b.id);
  }

  async jobs(run: Run): Promise<Job[]> {
    const { jobs } = await this.api.get<{ jobs: Job[] }>(
      `${this.path}/actions/runs/${run.id}/jobs`,
    );
    return jobs.sort((a, b) => a.id - b.id);
  }

  async rerun(run: Run): Promise<void> {
    await this.api.post(`${this.path}/actions/runs/${run.id}/rerun`);
  }

  async rerunJob(run: Run, job: Job): Promise<void> {
    await this.api.post(`${this.path}/actions/runs/${run.id}/jobs/${job.id}/rerun`);
  }

  async log(run: Run): Promise<string> {
    const logs = await Promise.all(
      (await this.jobs(run)).map(({ id }) =>
        this.api.ask('GET', `${this.path}/actions/jobs/${id}/logs`),
      ),
    );
    return logs.map(({ body }) => String(body)).join('\n');
  }

  /** The newest run of `workflow` after `before` (runs that were there), once it has ended. */
  async finishedRun(workflow: string, before: readonly Run[] = []): Promise<Run> {
    const known = new Set(before.map(({ id }) => id));
    let seen: Run[] = [];
    return waitUntil(
      () => `a run of ${workflow} that has ended; there are ${JSON.stringify(seen.map(brief))}`,
      async () => {
        seen = await this.runs();
        const run = seen.findLast(
          ({ id, path }) => !known.has(id) && path.startsWith(`${workflow}@`),
        );
        return run?.status === 'completed' && run;
      },
      { timeoutMs: 300_000, everyMs: 500 },
    );
  }

  /** The same run, once its next attempt has ended. */
  async finishedAgain(run: Run): Promise<Run> {
    return waitUntil(
      `run ${run.id} ends again`,
      async () => {
        const now = await this.api.get<Run>(`${this.path}/actions/runs/${run.id}`);
        return now.status === 'completed' && now;
      },
      { timeoutMs: 300_000, everyMs: 500 },
    );
  }
}

function brief({ id, path, event, status }: Run): string {
  return `${id} ${path} ${event} ${status}`;
}

/** The folder of an action, pushed to a repository of its own, as a mirror is. */
export async function pushAction(api: GiteaApi, folder: string): Promise<string> {
  const repository = await Repository.create(api, 'namespace-teardown-gate');
  const files = ['action.yml', 'dist/index.js', 'dist/package.json'];
  const texts = await Promise.all(files.map((file) => readFile(join(folder, file))));
  const sha = await repository.commit(
    Object.fromEntries(files.map((file, at) => [file, texts[at] ?? ''])),
  );
  return `${repository.fullName}@${sha}`;
}
