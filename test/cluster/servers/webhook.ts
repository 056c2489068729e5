import { json } from 'node:stream/consumers';
import { type Json, type JsonObject, stringAt } from '../../../src/base/json.ts';
import type { World } from '../world.ts';
import { type HttpsServer, startHttpsServer } from './https.ts';

/** What an admission webhook has against a request, if anything. */
type Refusal = () => string | undefined;

/**
 * A live admission webhook. Returns the `clientConfig` for its configuration: by URL, so that the API
 * server reaches it without a Service.
 */
export async function startWebhook(world: World, refusal: Refusal): Promise<JsonObject> {
  const server = await startWebhookServer(world, [], refusal);
  // Loopback where the API server is on this machine: no network has to be there for that.
  const host = world.plane ? '127.0.0.1' : server.address;
  return { url: `https://${host}:${server.port}/validate`, caBundle: server.caBundle };
}

/** The same by its names, for who brings a Service in front of it. */
export function startWebhookServer(
  world: World,
  names: readonly string[],
  refusal: Refusal,
): Promise<HttpsServer> {
  return startHttpsServer(world, names, async (request, response) => {
    const review = (await json(request)) as Json;
    const message = refusal();
    const status = message === undefined ? {} : { status: { code: 403, message } };
    const uid = stringAt(review, 'request', 'uid');
    const answer = {
      ...{ apiVersion: 'admission.k8s.io/v1', kind: 'AdmissionReview' },
      response: { uid, allowed: message === undefined, ...status },
    };
    response.setHeader('content-type', 'application/json').end(JSON.stringify(answer));
  });
}
