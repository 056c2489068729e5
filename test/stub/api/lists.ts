import type { JsonObject } from '../../../src/base/json.ts';
import { type Form, metadataOnly } from './accept.ts';
import { nameKey, type Objects } from './objects.ts';
import type { Route, ServedType } from './routes.ts';
import { parseSelectors } from './selectors.ts';
import { badRequest, continueExpired, NotSupported } from './status.ts';

/** What an etcd `continue` token says: which state of the store, and after which key. */
interface ContinueToken {
  v: string;
  rv: number;
  start: string;
}

/** Lists, page by page, out of the state that the first page was cut from. */
export class Lists {
  readonly #objects: Objects;
  /** By resourceVersion and collection path; only states that a `continue` token refers to. */
  readonly #states = new Map<string, JsonObject[]>();

  constructor(objects: Objects) {
    this.#objects = objects;
  }

  /** Compaction: every `continue` token handed out so far is answered with 410 Expired. */
  expireTokens(): void {
    this.#states.clear();
  }

  list(route: Route, query: URLSearchParams, form: Form): JsonObject {
    refuseUnsupported(query);
    const matches = parseSelectors(query);
    const limit = parseLimit(query.get('limit'));
    const token = parseToken(query.get('continue'));
    // -1 is the token of a 410: go on after that key, in whatever state there is now.
    const isCurrent = token === undefined || token.rv === -1;
    const rv = isCurrent ? this.#objects.resourceVersion : token.rv;
    const stateKey = `${rv} ${route.namespace} ${route.type.collection}`;
    const all = isCurrent
      ? this.#objects.list(route.type.collection, route.namespace)
      : this.#states.get(stateKey);
    if (all === undefined) {
      throw continueExpired(
        encodeToken({ v: 'meta.k8s.io/v1', rv: -1, start: token?.start ?? '' }),
      );
    }
    const rest = all.filter((object) => token === undefined || nameKey(object) >= token.start);
    const found = rest.filter(matches);
    const page = limit === 0 ? found : found.slice(0, limit);
    const left = found.length - page.length;
    const last = page.at(-1);
    const metadata: JsonObject = { resourceVersion: String(rv) };
    if (left > 0 && last !== undefined) {
      this.#states.set(stateKey, all);
      metadata['continue'] = encodeToken({ v: 'meta.k8s.io/v1', rv, start: `${nameKey(last)}\0` });
      // With a selector the server does not know how many of the rest would match.
      if (!query.has('labelSelector') && !query.has('fieldSelector')) {
        metadata['remainingItemCount'] = left;
      }
    }
    return envelope(route.type, form, metadata, page);
  }
}

function envelope(
  type: ServedType,
  form: Form,
  metadata: JsonObject,
  items: JsonObject[],
): JsonObject {
  if (form === 'metadata') {
    return {
      kind: 'PartialObjectMetadataList',
      apiVersion: 'meta.k8s.io/v1',
      metadata,
      items: items.map(metadataOnly),
    };
  }
  const apiVersion = apiVersionOf(type);
  return { kind: `${type.kind}List`, apiVersion, metadata, items: items.map(inList(type)) };
}

/** Items of built-in types carry no kind and apiVersion in a list; custom resources do. */
function inList(type: ServedType): (object: JsonObject) => JsonObject {
  return (object) => {
    if (type.isCustom) return { ...object, kind: type.kind, apiVersion: apiVersionOf(type) };
    const { kind: _kind, apiVersion: _apiVersion, ...rest } = object;
    return rest;
  };
}

/** Single objects and those in watch events always carry both. */
export function withType(type: ServedType, object: JsonObject): JsonObject {
  return { kind: type.kind, apiVersion: apiVersionOf(type), ...object };
}

function apiVersionOf(type: ServedType): string {
  return type.group === '' ? type.version : `${type.group}/${type.version}`;
}

function refuseUnsupported(query: URLSearchParams): void {
  for (const name of ['resourceVersionMatch', 'sendInitialEvents']) {
    if (query.has(name)) throw new NotSupported(`query parameter "${name}"`);
  }
}

function parseLimit(text: string | null): number {
  if (text === null || text === '') return 0;
  if (!/^\d+$/.test(text)) throw badRequest(`strconv.ParseInt: parsing "${text}": invalid syntax`);
  return Number(text);
}

function parseToken(text: string | null): ContinueToken | undefined {
  if (text === null || text === '') return undefined;
  try {
    return JSON.parse(Buffer.from(text, 'base64url').toString()) as ContinueToken;
  } catch {
    throw badRequest('invalid continue token: continue key is not valid');
  }
}

function encodeToken(token: ContinueToken): string {
  return Buffer.from(JSON.stringify(token)).toString('base64url');
}
