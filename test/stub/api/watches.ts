import type { ServerResponse } from 'node:http';
import { isObject, type JsonObject } from '../../../src/base/json.ts';
import { type Form, metadataOnly } from './accept.ts';
import { withType } from './lists.ts';
import type { Change, Objects } from './objects.ts';
import { keyOf, type Route } from './routes.ts';
import { parseSelectors } from './selectors.ts';
import { NotSupported, versionExpired } from './status.ts';

/** The real server sends one about every minute. */
const BOOKMARK_EVERY_MS = 60_000;

interface Event {
  type: 'ADDED' | 'MODIFIED' | 'DELETED' | 'BOOKMARK' | 'ERROR';
  object: JsonObject;
}

/** Open watches: one JSON document per line, until the client, `timeoutSeconds` or the test ends it. */
export class Watches {
  readonly #objects: Objects;
  readonly #open = new Set<() => void>();
  readonly #awaited = new Set<() => void>();

  constructor(objects: Objects) {
    this.#objects = objects;
  }

  /** Resolves as soon as somebody is watching: then the gate is waiting. */
  async untilOpen(): Promise<void> {
    if (this.#open.size > 0) return;
    await new Promise<void>((resolve) => this.#awaited.add(resolve));
  }

  /** Ends every stream properly, as the server does from time to time. */
  endAll(): void {
    for (const end of [...this.#open]) end();
  }

  serve(route: Route, query: URLSearchParams, form: Form, response: ServerResponse): void {
    if (query.has('sendInitialEvents')) throw new NotSupported('query "sendInitialEvents"');
    if (route.name !== undefined) throw new NotSupported('watching one object by its path');
    const matches = parseSelectors(query);
    const show = (object: JsonObject): JsonObject => {
      const typed = withType(route.type, object);
      return form === 'metadata' ? metadataOnly(typed) : typed;
    };
    const send = ({ type, object }: Event): void => {
      response.write(`${JSON.stringify({ type, object })}\n`);
    };
    const tell = (change: Change): void => {
      const event = eventFor(change, route, matches);
      if (event !== undefined) send({ type: event.type, object: show(event.object) });
    };
    response.writeHead(200, { 'Content-Type': 'application/json' });
    response.flushHeaders();

    const from = query.get('resourceVersion') ?? '';
    if (from === '' || from === '0') {
      const { collection } = keyOf(route);
      const now = this.#objects.list(collection, route.namespace).filter(matches);
      for (const object of now) send({ type: 'ADDED', object: show(object) });
    } else if (Number(from) < this.#objects.oldestVersion) {
      const expired = versionExpired(Number(from), this.#objects.oldestVersion);
      send({ type: 'ERROR', object: expired.status });
      response.end();
      return;
    } else {
      for (const change of this.#objects.changesSince(Number(from))) tell(change);
    }
    this.#follow(route, query, response, tell, send);
  }

  #follow(
    route: Route,
    query: URLSearchParams,
    response: ServerResponse,
    tell: (change: Change) => void,
    send: (event: Event) => void,
  ): void {
    const bookmark = (): void => {
      if (query.get('allowWatchBookmarks') !== 'true') return;
      const resourceVersion = String(this.#objects.resourceVersion);
      send({
        type: 'BOOKMARK',
        object: withType(route.type, { metadata: { resourceVersion, creationTimestamp: null } }),
      });
    };
    const stopListening = this.#objects.onChange(tell);
    const bookmarks = setInterval(bookmark, BOOKMARK_EVERY_MS);
    const seconds = Number(query.get('timeoutSeconds') ?? '0');
    const timeout = seconds > 0 ? setTimeout(() => end(), seconds * 1_000) : undefined;
    const release = (): void => {
      stopListening();
      clearInterval(bookmarks);
      clearTimeout(timeout);
      this.#open.delete(end);
    };
    const end = (): void => {
      bookmark();
      release();
      response.end();
    };
    this.#open.add(end);
    for (const resolve of this.#awaited) resolve();
    this.#awaited.clear();
    response.on('close', release);
  }
}

/** With a selector, an object that stops matching looks deleted to this watcher, and vice versa. */
function eventFor(
  change: Change,
  route: Route,
  matches: (object: JsonObject) => boolean,
): Event | undefined {
  if (change.collection !== route.type.collection) return undefined;
  const isMine = (object: JsonObject | undefined): object is JsonObject =>
    object !== undefined && isIn(object, route.namespace) && matches(object);
  const { before, after } = change;
  if (isMine(after)) return { type: isMine(before) ? 'MODIFIED' : 'ADDED', object: after };
  if (!isMine(before)) return undefined;
  return { type: 'DELETED', object: withVersion(before, change.resourceVersion) };
}

function isIn(object: JsonObject, namespace: string): boolean {
  const metadata = isObject(object['metadata']) ? object['metadata'] : {};
  return namespace === '' || metadata['namespace'] === namespace;
}

function withVersion(object: JsonObject, resourceVersion: number): JsonObject {
  const metadata = isObject(object['metadata']) ? object['metadata'] : {};
  return { ...object, metadata: { ...metadata, resourceVersion: String(resourceVersion) } };
}
