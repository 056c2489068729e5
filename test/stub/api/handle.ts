import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Json, JsonObject } from '../../../src/base/json.ts';
import type { RecordedRequest } from '../api-server.ts';
import { metadataOnly, negotiate } from './accept.ts';
import type { Cluster } from './cluster.ts';
import {
  accessOf,
  type Identity,
  refuseUnlessAllowed,
  reviewAccess,
  reviewSelf,
} from './identities.ts';
import { withType } from './lists.ts';
import { keyOf, parseRoute, type Route, splitPath } from './routes.ts';
import {
  ApiError,
  badRequest,
  methodNotAllowed,
  NotSupported,
  notFound,
  unauthorized,
} from './status.ts';
import { deleteObject, finalizeNamespace, patchObject } from './writes.ts';

export interface Handling {
  cluster: Cluster;
  tokens: Readonly<Record<string, Identity>>;
  requests: RecordedRequest[];
  version: JsonObject;
  /** The server's clock. */
  now: () => Date;
}

interface Call {
  identity: Identity;
  method: string;
  path: string;
  query: URLSearchParams;
  accept: string | undefined;
  contentType: string;
  body: Json;
}

/** Text goes out as it is, everything else as JSON; undefined when a watch writes its own. */
type Reply = { status: number; contentType?: string; body: Json } | undefined;

export async function handleRequest(
  handling: Handling,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const { method = 'GET', url = '/' } = request;
  const text = await readText(request);
  const record: RecordedRequest = {
    method,
    path: url,
    user: undefined,
    accept: request.headers.accept,
    contentType: request.headers['content-type'],
    body: text === '' ? undefined : parseBody(text),
  };
  handling.requests.push(record);
  response.setHeader('Date', handling.now().toUTCString());
  let reply: Reply;
  try {
    const identity = identify(handling, request.headers.authorization);
    record.user = identity.username;
    const { pathname, searchParams } = new URL(url, 'http://localhost');
    const call: Call = {
      identity,
      method,
      path: pathname.length > 1 ? pathname.replace(/\/$/, '') : pathname,
      query: searchParams,
      accept: request.headers.accept,
      contentType: request.headers['content-type'] ?? '',
      body: text === '' ? {} : (record.body ?? {}),
    };
    reply = answer(handling, call, response);
  } catch (error) {
    reply = failure(error, record);
  }
  if (reply === undefined) {
    record.status = response.statusCode;
    return;
  }
  record.status = reply.status;
  const isText = typeof reply.body === 'string';
  const fallback = isText ? 'text/plain; charset=utf-8' : 'application/json';
  response.writeHead(reply.status, { 'Content-Type': reply.contentType ?? fallback });
  response.end(isText ? reply.body : JSON.stringify(reply.body));
}

function failure(error: unknown, record: RecordedRequest): Reply {
  if (error instanceof ApiError) return { status: error.code, body: error.status };
  const why = error instanceof Error ? error.message : String(error);
  record.notSupported = `${record.method} ${record.path}: ${why}`;
  const what = error instanceof NotSupported ? 'not supported' : 'failed in';
  return { status: 501, body: `${what} by the recorded API server: ${why}\n` };
}

function identify({ tokens }: Handling, authorization: string | undefined): Identity {
  const token = /^Bearer (.+)$/.exec(authorization ?? '')?.[1];
  const identity = token !== undefined && Object.hasOwn(tokens, token) ? tokens[token] : undefined;
  if (identity === undefined) throw unauthorized();
  return identity;
}

function answer(handling: Handling, call: Call, response: ServerResponse): Reply {
  const { catalogue } = handling.cluster;
  const split = splitPath(call.path);
  if (split !== undefined && catalogue.serves(split.prefix)) {
    const fault = catalogue.fault(split.prefix);
    if (fault !== undefined) return fault;
    if (split.rest.length > 0) return answerResource(handling, call, split, response);
  }
  if (call.method !== 'GET') throw new NotSupported(`${call.method} on ${call.path}`);
  if (['/healthz', '/livez', '/readyz'].includes(call.path)) return { status: 200, body: 'ok' };
  if (call.path === '/version') return { status: 200, body: handling.version };
  const discovered = catalogue.answer(call.path, negotiate(call.accept, ['aggregated-discovery']));
  return discovered ?? { status: 404, body: '404 page not found\n' };
}

function answerResource(
  handling: Handling,
  call: Call,
  { prefix, rest }: { prefix: string; rest: string[] },
  response: ServerResponse,
): Reply {
  const { identity, method, query, body } = call;
  const route = parseRoute(handling.cluster.catalogue.types, prefix, rest);
  const verb = verbOf(method, route, query);
  // ClusterRole system:basic-user: every user may create self-subject reviews.
  if (verb === 'create' && route.type.resource === 'selfsubjectaccessreviews') {
    return { status: 201, body: reviewAccess(identity, body) };
  }
  if (verb === 'create' && route.type.resource === 'selfsubjectreviews') {
    return { status: 201, body: reviewSelf(identity, handling.now()) };
  }
  refuseUnlessAllowed(identity, accessOf(verb, route, query));
  const fault = handling.cluster.recordedFault(route);
  if (fault !== undefined) return fault;
  if (verb === 'get' || verb === 'list' || verb === 'watch') {
    return readResource(handling.cluster, call, route, verb, response);
  }
  return writeResource(handling, call, route, verb);
}

function readResource(
  cluster: Cluster,
  { accept, query }: Call,
  route: Route,
  verb: 'get' | 'list' | 'watch',
  response: ServerResponse,
): Reply {
  const form = negotiate(accept, ['metadata']);
  // A namespace's /finalize takes PUT only. Other subresources were not recorded.
  if (route.subresource === 'finalize') throw methodNotAllowed();
  if (route.subresource !== undefined && route.subresource !== 'status') {
    throw new NotSupported(`subresource "${route.subresource}"`);
  }
  if (verb === 'watch') {
    cluster.watches.serve(route, query, form, response);
    return undefined;
  }
  if (verb === 'list') return { status: 200, body: cluster.lists.list(route, query, form) };
  const object = cluster.objects.get(keyOf(route));
  if (object === undefined) throw notFound({ ...route.type, name: route.name });
  const typed = withType(route.type, object);
  return { status: 200, body: form === 'metadata' ? metadataOnly(typed) : typed };
}

function writeResource(
  { cluster, now }: Handling,
  { query, body, contentType }: Call,
  route: Route,
  verb: string,
): Reply {
  const writing = { objects: cluster.objects, route, dryRun: isDryRun(query), now: now() };
  const isFinalize = route.type.resource === 'namespaces' && route.subresource === 'finalize';
  if (isFinalize && verb !== 'update') throw methodNotAllowed();
  if (isFinalize) return { status: 200, body: finalizeNamespace(writing, body) };
  if (route.subresource !== undefined || route.name === undefined) {
    throw new NotSupported(`${verb} on ${route.type.collection}/${route.subresource ?? ''}`);
  }
  if (verb === 'delete') return { status: 200, body: deleteObject(writing, body) };
  if (verb === 'patch' && contentType.startsWith('application/json-patch+json')) {
    if (typeof body === 'string') throw badRequest('error decoding patch: invalid character');
    return { status: 200, body: patchObject(writing, body) };
  }
  throw new NotSupported(`${verb} of ${route.type.resource} as ${contentType || 'nothing'}`);
}

function verbOf(method: string, route: Route, query: URLSearchParams): string {
  const isCollection = route.name === undefined;
  switch (method) {
    case 'GET':
      if (['1', 'true'].includes(query.get('watch') ?? '')) return 'watch';
      return isCollection ? 'list' : 'get';
    case 'POST':
      return 'create';
    case 'PUT':
      return 'update';
    case 'PATCH':
      return 'patch';
    case 'DELETE':
      return isCollection ? 'deletecollection' : 'delete';
    default:
      throw methodNotAllowed();
  }
}

function isDryRun(query: URLSearchParams): boolean {
  const dryRun = query.get('dryRun');
  if (dryRun !== null && dryRun !== 'All') throw badRequest(`invalid dryRun: ${dryRun}`);
  return dryRun === 'All';
}

async function readText(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks).toString();
}

/** Returns a body that is not JSON as text. */
function parseBody(text: string): Json {
  try {
    return JSON.parse(text) as Json;
  } catch {
    return text;
  }
}
