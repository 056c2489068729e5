import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { createRedactor } from '../../src/base/redact.ts';
import type { Clock } from '../../src/base/time.ts';
import type { KubernetesApi } from '../../src/kubernetes/api.ts';
import { connect } from '../../src/kubernetes/connect.ts';
import type { ConnectOptions } from '../../src/kubernetes/connections.ts';
import type { Read, ReadFailure } from '../../src/model/read.ts';

/** Creates a folder that is deleted at the end of the test. */
export function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'adapter-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

export function writeFile(folder: string, name: string, content: string): string {
  const file = join(folder, name);
  writeFileSync(file, content);
  return file;
}

/** JSON is YAML. */
export function kubeconfig(cluster: object, user: object = {}): string {
  return JSON.stringify({
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name: 'c', cluster }],
    users: [{ name: 'u', user }],
    contexts: [{ name: 'x', context: { cluster: 'c', user: 'u' } }],
    'current-context': 'x',
  });
}

/** Sleeping takes no time but moves the clock on. */
export class TestClock implements Clock {
  readonly slept: number[] = [];
  private ahead = 0;

  now(): number {
    return Date.now() + this.ahead;
  }

  async sleep(ms: number): Promise<void> {
    this.slept.push(ms);
    this.ahead += ms;
  }

  advance(ms: number): void {
    this.ahead += ms;
  }
}

export interface To {
  cluster?: object;
  user?: object;
  /** The folder that relative paths of the kubeconfig are relative to. */
  folder?: string;
  options?: Partial<ConnectOptions>;
}

/** Connects to this server with the real client, through a kubeconfig file. */
export async function connectTo(server: string, to: To = {}): Promise<KubernetesApi> {
  const folder = to.folder ?? temporaryFolder();
  const file = writeFile(folder, 'config', kubeconfig({ server, ...to.cluster }, to.user));
  const api = await connect({
    kubeconfig: file,
    env: { PATH: process.env['PATH'] },
    redactor: createRedactor(),
    userAgent: 'test/1',
    homeDir: folder,
    clock: new TestClock(),
    random: () => 1,
    ...to.options,
  });
  onTestFinished(() => api.close());
  return api;
}

export function failureIn(result: Read<unknown>): ReadFailure {
  if (result.ok) throw new Error(`it worked: ${JSON.stringify(result.value)}`);
  return result.failure;
}

export function valueIn<T>(result: Read<T>): T {
  if (!result.ok) throw new Error(result.failure.message);
  return result.value;
}
