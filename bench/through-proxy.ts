import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { readKubeconfig, writeKubeconfigText } from '../test/cluster/kubeconfig.ts';
import { type ApiProxyOptions, type PassedRequest, startApiProxy } from './api-proxy.ts';
import type { Bench } from './bench.ts';
import { withFolder } from './leftovers.ts';
import { type Ended, runCommand } from './run-command.ts';
import { IDENTITY } from './tools.ts';

/** The gate's explanation of this namespace, with a proxy between it and the API server. */
export async function explainThroughProxy(
  bench: Bench,
  namespace: string,
  options: ApiProxyOptions = {},
): Promise<{ ended: Ended; requests: PassedRequest[] }> {
  const proxy = await startApiProxy(bench.plane, options);
  try {
    return await withFolder(async (folder) => {
      const kubeconfig = join(folder, 'kubeconfig');
      const { token = '' } = readKubeconfig(bench.kubeconfig);
      const connection = { server: proxy.url, ca: undefined, token };
      await writeFile(kubeconfig, writeKubeconfigText(IDENTITY, connection), {
        mode: 0o600,
      });
      const args = [namespace, '--now', '--format', 'json'];
      const ended = await runCommand(bench.tools.gate(kubeconfig, args));
      return { ended, requests: proxy.requests };
    });
  } finally {
    await proxy.close();
  }
}
