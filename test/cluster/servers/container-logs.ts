import type { World } from '../world.ts';
import { startHttpsServer } from './https.ts';
import type { Operator } from './operator-process.ts';

/** What the containers of a pod have written. */
type ContainerLogs = (of: { namespace: string; pod: string; container: string }) => string;

/**
 * Answers for the logs of this node's pods in the place of its kubelet: the API server asks `GET
 * /containerLogs/namespace/pod/container` (kubernetes pkg/kubelet/server). Lines begin with their time, as with
 * `timestamps=true`.
 */
export async function serveContainerLogs(
  world: World,
  node: string,
  logs: ContainerLogs,
): Promise<void> {
  const { address, port } = await startHttpsServer(world, [node], (request, response) => {
    const url = new URL(request.url ?? '/', 'https://kubelet');
    const [, , namespace = '', pod = '', container = ''] = url.pathname.split('/');
    const text = Buffer.from(logs({ namespace, pod, container }));
    response.writeHead(200, { 'content-type': 'text/plain' });
    const limit = Number(url.searchParams.get('limitBytes') ?? Number.POSITIVE_INFINITY);
    response.end(text.subarray(0, limit));
  });
  await world.client.patchStatus(
    { apiVersion: 'v1', kind: 'Node', name: node },
    {
      addresses: [{ type: 'InternalIP', address }],
      daemonEndpoints: { kubeletEndpoint: { Port: port } },
    },
  );
}

/** A line of controller-runtime's logger (zap, JSON) about an object of this operator. */
export function errorLine(
  { group, kind }: Pick<Operator, 'group' | 'kind'>,
  object: { namespace: string; name: string },
  error: string,
): string {
  const ts = new Date(Date.now() - 5_000).toISOString();
  const record = {
    ...{ level: 'error', ts, msg: 'Reconciler error', controller: kind.toLowerCase() },
    ...{ controllerGroup: group, controllerKind: kind, [kind]: object, ...object },
    ...{ reconcileID: crypto.randomUUID(), error, stacktrace: 'main.main\n\t/src/main.go:12' },
  };
  return `${ts} ${JSON.stringify(record)}\n`;
}
