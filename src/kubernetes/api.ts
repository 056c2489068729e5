import type { JsonObject } from '../base/json.ts';
import type { Read } from '../model/read.ts';
import type { Discovery } from '../model/snapshot.ts';

/** What the gate asks of a Kubernetes API server. Paths are those of the API, without the server. */
export interface KubernetesApi {
  readonly target: ClusterTarget;
  /** The server's clock minus the local clock, from the `Date` header of the last answer. */
  clockOffsetMs(): number;

  get(path: string, options?: CallOptions): Promise<Read<JsonObject>>;
  /** Reads page by page, after a 410 once from the start. Items are passed on as they arrive: memory does not grow. */
  list<T>(path: string, begin: () => Fold<T>, options?: ListOptions): Promise<Read<ListResult<T>>>;
  /** Reports changes from now on. When it ends, the caller must read the collection again. */
  watch(path: string, options: WatchOptions): Promise<Read<undefined>>;
  discover(options?: CallOptions): Promise<Read<Discovery>>;
  /** Reads a plain text once. An answer longer than `maxBytes` is a failed read. */
  text(path: string, options: CallOptions & { maxBytes: number }): Promise<Read<string>>;
  /** It is sent again only after a 429. After another error the caller must read whether the change was made. */
  send(request: Mutation, options?: CallOptions): Promise<Read<JsonObject>>;

  close(): Promise<void>;
}

interface ClusterTarget {
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
  /** Of one attempt; 15 s by default. */
  timeoutMs?: number;
  /** By default 3 (GET only), and 8 while the server answers 429. */
  retries?: number;
}

export interface ListOptions extends CallOptions {
  /** Requests only metadata. Servers may answer with whole objects nevertheless. */
  metadataOnly?: boolean;
  labelSelector?: string;
  fieldSelector?: string;
  limit?: number;
  maxItems?: number;
}

export type Fold<T> = { add(item: JsonObject): void; readonly kept: T };

/** Keeps the results of `parse` for each item, which may be none, one or several. */
export function collectItems<T>(parse: (item: JsonObject) => T | readonly T[]): () => Fold<T[]> {
  return () => {
    const kept: T[] = [];
    return { kept, add: (item) => kept.push(...([parse(item)].flat() as T[])) };
  };
}

export type ListResult<T> = { kept: T; complete: boolean };

export interface WatchOptions extends CallOptions {
  fieldSelector?: string;
  onOpen?: () => void;
  onEvent: (event: WatchEvent) => void;
}

/** The object of `ERROR` is a Status. */
export interface WatchEvent {
  type: 'ADDED' | 'MODIFIED' | 'DELETED' | 'BOOKMARK' | 'ERROR';
  object: JsonObject;
}

export interface Mutation {
  /** A PATCH is a JSON Patch, which checks the identity of the object by `test`. */
  method: 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  path: string;
  body?: JsonObject | JsonObject[];
  dryRun?: boolean;
}
