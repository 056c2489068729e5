import type { IncomingMessage, ServerResponse } from 'node:http';
import { type Json, type JsonObject, stringAt } from '../../../src/base/json.ts';
import type { World } from '../world.ts';
import { type HttpsServer, startHttpsServer } from './https.ts';

/** What an admission webhook says to a request: nothing against it, its reason, what it changes, or nothing at all. */
export type Verdict = 'allow' | { deny: string } | { patch: JsonObject[] } | 'never answers';

/**
 * A live admission webhook. Returns the `clientConfig` for its configuration: by URL, so that the API
 * server reaches it without a Service.
 */
export async function startWebhook(
  world: World,
  judge: (review: Json) => Verdict,
): Promise<JsonObject> {
  const server = await startWebhookServer(world, [], judge);
  // Loopback where the API server is on this machine: no network has to be there for that.
  const host = world.plane ? '127.0.0.1' : server.address;
  return { url: `https://${host}:${server.port}/validate`, caBundle: server.caBundle };
}

/** The same by its names, for who brings a Service in front of it. */
export function startWebhookServer(
  world: World,
  names: readonly string[],
  judge: (review: Json) => Verdict,
): Promise<HttpsServer> {
  return startHttpsServer(world, names, (request, response) => {
    answer(request, response, judge).catch(() => response.destroy());
  });
}

async function answer(
  request: IncomingMessage,
  response: ServerResponse,
  judge: (review: Json) => Verdict,
): Promise<void> {
  const review = JSON.parse(await bodyOf(request)) as Json;
  const verdict = judge(review);
  if (verdict === 'never answers') return;
  const isPatch = typeof verdict === 'object' && 'patch' in verdict;
  const patch = isPatch && Buffer.from(JSON.stringify(verdict.patch)).toString('base64');
  const denied = typeof verdict === 'object' && 'deny' in verdict && verdict.deny;
  response.setHeader('content-type', 'application/json').end(
    JSON.stringify({
      apiVersion: 'admission.k8s.io/v1',
      kind: 'AdmissionReview',
      response: {
        uid: stringAt(review, 'request', 'uid'),
        allowed: denied === false,
        ...(patch === false ? {} : { patchType: 'JSONPatch', patch }),
        ...(denied === false ? {} : { status: { code: 403, message: denied } }),
      },
    }),
  );
}

async function bodyOf(request: IncomingMessage): Promise<string> {
  let body = '';
  request.setEncoding('utf8');
  for await (const chunk of request) body += chunk;
  return body;
}
