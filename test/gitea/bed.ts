import { readdirSync, readFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { workflowsIn } from '../../scripts/docs/markdown.ts';
import { type ControlPlane, startControlPlane } from '../cluster/control-plane.ts';
import { configMap } from '../cluster/objects.ts';
import { namespaceRef } from '../cluster/world.ts';
import { REPOSITORY } from '../stub/action-yml.ts';
import type { GiteaApi } from './api.ts';
import { buildGitea, type GiteaVersion } from './binaries.ts';
import { type GiteaHost, startGitea } from './host.ts';
import { pushAction, Repository } from './repository.ts';

export const FINALIZER = 'example.com/cleanup';
/** Who owns the repositories of the tests. */
export const OWNER = 'team';

/** A Gitea with its runner, a control plane, and the action in a repository of that Gitea. */
export interface Bed {
  host: GiteaHost;
  plane: ControlPlane;
  team: GiteaApi;
  /** "tools/namespace-teardown-gate@<commit>": what stands after `uses:`. */
  action: string;
  stop(): Promise<void>;
}

/** `GITEA_ACTION`: a folder with another build of the action (`action.yml` and `dist/`). */
const ACTION_FOLDER = process.env['GITEA_ACTION'] || REPOSITORY;

export async function makeBed(
  version: GiteaVersion,
  say: (line: string) => void = () => {},
): Promise<Bed> {
  const binaries = await buildGitea(version, say);
  const [host, plane] = await Promise.all([startGitea(binaries), startControlPlane({ say })]);
  const team = await host.user(OWNER);
  const action = await pushAction(await host.user('tools'), ACTION_FOLDER);
  const stop = async (): Promise<void> => {
    await Promise.all([host.stop(), plane.stop()]);
  };
  return { host, plane, team, action, stop };
}

/** A complete workflow of the documentation, by its `name:`. */
export function documentedWorkflow(name: string): string {
  const pages = readdirSync(join(REPOSITORY, 'docs'), { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.md'))
    .map((file) => join('docs', file));
  const found = ['README.md', ...pages]
    .flatMap((page) => workflowsIn(readFileSync(join(REPOSITORY, page), 'utf8')))
    .filter((text) => text.startsWith(`name: ${name}\n`));
  const [workflow] = found;
  if (workflow === undefined) throw new Error(`no documented workflow is called ${name}`);
  return workflow;
}

/**
 * A documented workflow as somebody would take it over: the action's address, less patience, and names of
 * namespaces that no other test uses.
 */
export function adapted(workflow: string, action: string, prefix: string): string {
  const text = workflow
    .replaceAll(/OWNER\/namespace-teardown-gate@\S+/g, action)
    .replaceAll(/^( *)timeout: \w+$/gm, '$1timeout: 12s')
    .replaceAll('preview-', `${prefix}-`);
  if (!text.includes(`uses: ${action}`)) throw new Error('the workflow does not use the action');
  return text;
}

/** A repository of the team with these workflows on its default branch, and the kubeconfig as its secret. */
export async function project(
  bed: Bed,
  name: string,
  workflows: Readonly<Record<string, string>>,
): Promise<Repository> {
  const repository = await Repository.create(bed.team, name);
  const kubeconfig = await readFile(bed.plane.kubeconfig('teardown-gate'), 'utf8');
  await repository.secret('PREVIEW_KUBECONFIG', kubeconfig);
  await repository.commit(
    Object.fromEntries(
      Object.entries(workflows).map(([file, text]) => [`.github/workflows/${file}`, text]),
    ),
  );
  return repository;
}

/** A namespace whose deletion hangs on a finalizer that nobody removes. */
export async function hangingNamespace({ plane }: Bed, name: string): Promise<void> {
  await plane.admin.create({ apiVersion: 'v1', kind: 'Namespace', metadata: { name } });
  await plane.admin.create(configMap(name, 'held', { finalizers: [FINALIZER] }));
}

export async function cure({ plane }: Bed, name: string): Promise<void> {
  await plane.admin.patch(
    { apiVersion: 'v1', kind: 'ConfigMap', namespace: name, name: 'held' },
    { metadata: { finalizers: null } },
  );
}

export async function isThere({ plane }: Bed, name: string): Promise<boolean> {
  return (await plane.admin.find(namespaceRef(name))) !== undefined;
}
