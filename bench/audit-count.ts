import { type Json, stringAt } from '../src/base/json.ts';

/** One request as the API server's audit log tells it. */
export interface AuditedRequest {
  /** When the server received it. */
  at: number;
  verb: string;
  /** With query. */
  uri: string;
  userAgent: string;
  status: number;
}

/** All requests of this user in these lines of the log; one event is one request. */
export function requestsOf(lines: readonly string[], user: string): AuditedRequest[] {
  return lines
    .filter((line) => line.includes(`"${user}"`) && line.endsWith('}')) // the last may be half written
    .map((line) => JSON.parse(line) as Json)
    .filter((event) => stringAt(event, 'user', 'username') === user)
    .filter((event) => ['ResponseComplete', 'Panic'].includes(stringAt(event, 'stage') ?? ''))
    .map((event) => ({
      at: Date.parse(stringAt(event, 'requestReceivedTimestamp') ?? ''),
      verb: stringAt(event, 'verb') ?? '',
      uri: stringAt(event, 'requestURI') ?? '',
      userAgent: stringAt(event, 'userAgent') ?? '',
      status: statusOf(event),
    }));
}

function statusOf(event: Json): number {
  const { responseStatus } = event as { responseStatus?: { code?: number } };
  return responseStatus?.code ?? 0;
}

/** The pages of a collection that were read, by the `limit` of each. */
export interface ReadCollection {
  path: string;
  limits: number[];
}

/** Which collections were listed within the namespace, in the order of their first page. */
export function collectionsRead(
  requests: readonly AuditedRequest[],
  namespace: string,
): ReadCollection[] {
  const byPath = new Map<string, number[]>();
  for (const { verb, uri } of [...requests].sort((a, b) => a.at - b.at)) {
    const { pathname, searchParams } = new URL(uri, 'https://server');
    const isWithin = pathname.includes(`/namespaces/${namespace}/`);
    if (verb !== 'list' || !isWithin || searchParams.has('fieldSelector')) continue;
    const limits = byPath.get(pathname) ?? [];
    limits.push(Number(searchParams.get('limit') ?? 0));
    byPath.set(pathname, limits);
  }
  return [...byPath].map(([path, limits]) => ({ path, limits }));
}
