import type { JsonObject } from '../base/json.ts';
import type { Read } from '../model/read.ts';
import type { Discovery } from '../model/snapshot.ts';

/** What the gate needs of a Kubernetes API server. Paths are those of the API, without the server. */
export interface KubernetesApi {
  /** Where it connects to, for people; without credentials. */
  readonly target: ClusterTarget;
  /**
   * Server clock minus ours, in ms, from the `Date` header of the last answer; 0 before the first.
   * Resolution 1 s. Grace periods and Leases must be judged by the server's clock.
   */
  clockOffsetMs(): number;

  /** One object. Retried within bounds on network errors, 429 and 5xx. */
  get(path: string, options?: CallOptions): Promise<Read<JsonObject>>;
  /**
   * A collection, page by page (`limit`/`continue`; on 410 once from the start, with a new fold). Items are
   * handed over as they come, so memory does not grow with the collection.
   */
  list<T>(path: string, begin: () => Fold<T>, options?: ListOptions): Promise<Read<Listed<T>>>;
  /**
   * Changes of a collection from now on, until the server, the signal or an error event ends it: whoever
   * follows it has to look again then. Only one that is not accepted, or sends garbage, is a failed read.
   */
  watch(path: string, options: WatchOptions): Promise<Read<undefined>>;
  /** Every resource type that the server serves, and the group-versions that could not be read. */
  discover(options?: CallOptions): Promise<Read<Discovery>>;
  /** A plain text, such as a container's log. Sent once; a longer answer than `maxBytes` is a failed read. */
  text(path: string, options: CallOptions & { maxBytes: number }): Promise<Read<string>>;
  /**
   * A mutation (or a review). Sent once, and again only where the server was too busy to begin (429): what became of
   * it after another error is for the caller to read.
   */
  send(request: Mutation, options?: CallOptions): Promise<Read<JsonObject>>;

  /** Closes connections so that the process can end by itself. */
  close(): Promise<void>;
}

interface ClusterTarget {
  /** Scheme, host, port and path prefix of the server; user info removed. */
  server: string;
  /** Name of the kubeconfig context, or `in-cluster`. */
  context: string;
  /** Namespace that this process runs in, where it runs in the cluster it talks to. */
  ownNamespace: string | undefined;
}

export interface CallOptions {
  signal?: AbortSignal;
  /** Limit of one attempt; 15 s unless given. */
  timeoutMs?: number;
  /** How many times it may be repeated; unless given 3 (GET only), and 8 while the server answers 429. */
  retries?: number;
  /** Called for each request that is sent, pages and retries included. */
  onRequest?: () => void;
  /**
   * Called for each answer with what marks its cluster: the UIDs of the FlowSchema and the PriorityLevelConfiguration
   * that the API server applied (KEP-1040, `X-Kubernetes-Pf-*`). Undefined where the server says neither.
   */
  onAnswer?: (mark: string | undefined) => void;
}

export interface ListOptions extends CallOptions {
  /** Ask for metadata only (`PartialObjectMetadataList`); servers may answer in full all the same. */
  metadataOnly?: boolean;
  labelSelector?: string;
  fieldSelector?: string;
  /** Page size; 500 unless given. */
  limit?: number;
  /** Stop after this many items; the end then says `complete: false`. */
  maxItems?: number;
}

/** What is kept of a collection while it is read. */
export interface Fold<T> {
  add(item: JsonObject): void;
  readonly kept: T;
}

/** Keeps what `parse` makes of each item, which may be nothing or several things. */
export function keeping<T>(parse: (item: JsonObject) => T | readonly T[]): () => Fold<T[]> {
  return () => {
    const kept: T[] = [];
    return { kept, add: (item) => kept.push(...([parse(item)].flat() as T[])) };
  };
}

export interface Listed<T> {
  kept: T;
  /** False when `maxItems` ended it. */
  complete: boolean;
  /** The server's own `remainingItemCount` when it ended early; a lower bound at best. */
  remaining?: number;
}

export interface WatchOptions extends CallOptions {
  fieldSelector?: string;
  /** Called once when the server has accepted the watch. */
  onOpen?: () => void;
  onEvent: (event: WatchEvent) => void;
}

/** `ERROR` carries a Status as object. */
export interface WatchEvent {
  type: 'ADDED' | 'MODIFIED' | 'DELETED' | 'BOOKMARK' | 'ERROR';
  object: JsonObject;
}

export interface Mutation {
  /** A PATCH is a JSON Patch, which pins identity by `test`. */
  method: 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  path: string;
  body?: JsonObject | JsonObject[];
  dryRun?: boolean;
}

/** The same API, and how many requests were sent through it: several namespaces share one connection. */
export function countRequests(api: KubernetesApi): { api: KubernetesApi; requests: () => number } {
  let requests = 0;
  const onRequest = (): void => {
    requests++;
  };
  return {
    requests: () => requests,
    api: {
      target: api.target,
      clockOffsetMs: () => api.clockOffsetMs(),
      get: (path, options) => api.get(path, { ...options, onRequest }),
      list: (path, begin, options) => api.list(path, begin, { ...options, onRequest }),
      watch: (path, options) => api.watch(path, { ...options, onRequest }),
      discover: (options) => api.discover({ ...options, onRequest }),
      text: (path, options) => api.text(path, { ...options, onRequest }),
      send: (request, options) => api.send(request, { ...options, onRequest }),
      close: () => api.close(),
    },
  };
}
