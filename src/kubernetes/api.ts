import type { JsonObject } from '../base/json.ts';
import type { Read } from '../model/read.ts';
import type { Discovery } from '../model/snapshot.ts';

/** What the gate asks of a Kubernetes API server. Paths are those of the API, without the server. */
export interface KubernetesApi {
  readonly target: ClusterTarget;
  /**
   * Returns the server's clock minus the local clock in milliseconds, from the `Date` header of the last answer: grace
   * periods and Leases must be judged by the server's clock.
   */
  clockOffsetMs(): number;
  /** Returns the number of requests that were sent, also for pages and retries. */
  requestsSent(): number;

  get(path: string, options?: CallOptions): Promise<Read<JsonObject>>;
  /**
   * Reads a collection page by page (`limit`/`continue`; after a 410 once from the start, with a new fold).
   * Items are passed on as they arrive, so memory does not grow with the collection.
   */
  list<T>(path: string, begin: () => Fold<T>, options?: ListOptions): Promise<Read<ListResult<T>>>;
  /**
   * Reports changes of a collection from now on, until the server, the signal or an error event ends the watch.
   * The caller must then read the collection again.
   */
  watch(path: string, options: WatchOptions): Promise<Read<undefined>>;
  discover(options?: CallOptions): Promise<Read<Discovery>>;
  /** Reads a plain text, such as a container's log, once. An answer longer than `maxBytes` is a failed read. */
  text(path: string, options: CallOptions & { maxBytes: number }): Promise<Read<string>>;
  /**
   * Sends a mutation (or a review). It is sent once, and again only if the server was too busy to process it
   * (429). After another error the caller must read whether the change was made.
   */
  send(request: Mutation, options?: CallOptions): Promise<Read<JsonObject>>;

  /** Closes the connections so that the process can end. */
  close(): Promise<void>;
}

interface ClusterTarget {
  /** Without user info. */
  server: string;
  /** Name of the context in the kubeconfig, or `in-cluster`. */
  context: string;
  /** Namespace in which this process runs, if it runs in the same cluster. */
  ownNamespace: string | undefined;
  /** The kubeconfig has no credentials for its user, so none are sent. */
  isAnonymous?: boolean;
}

export interface CallOptions {
  signal?: AbortSignal;
  /** Limit of one attempt; 15 s by default. */
  timeoutMs?: number;
  /** Number of retries; by default 3 (GET only), and 8 while the server answers 429. */
  retries?: number;
}

export interface ListOptions extends CallOptions {
  /** Requests only metadata. Servers may answer with whole objects nevertheless. */
  metadataOnly?: boolean;
  labelSelector?: string;
  fieldSelector?: string;
  /** Page size; 500 by default. */
  limit?: number;
  /** Number of items after which reading stops. The result then has `complete: false`. */
  maxItems?: number;
}

export interface Fold<T> {
  add(item: JsonObject): void;
  readonly kept: T;
}

/** Returns a fold that keeps the results of `parse` for each item, which may be none, one or several. */
export function collectItems<T>(parse: (item: JsonObject) => T | readonly T[]): () => Fold<T[]> {
  return () => {
    const kept: T[] = [];
    return { kept, add: (item) => kept.push(...([parse(item)].flat() as T[])) };
  };
}

export interface ListResult<T> {
  kept: T;
  /** False if reading stopped at `maxItems`. */
  complete: boolean;
}

export interface WatchOptions extends CallOptions {
  fieldSelector?: string;
  /** Called once when the server has accepted the watch. */
  onOpen?: () => void;
  onEvent: (event: WatchEvent) => void;
}

/** An event of a watch. The object of `ERROR` is a Status. */
export interface WatchEvent {
  type: 'ADDED' | 'MODIFIED' | 'DELETED' | 'BOOKMARK' | 'ERROR';
  object: JsonObject;
}

export interface Mutation {
  /** HTTP method. A PATCH is a JSON Patch, which checks the identity of the object by `test`. */
  method: 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  path: string;
  body?: JsonObject | JsonObject[];
  dryRun?: boolean;
}
