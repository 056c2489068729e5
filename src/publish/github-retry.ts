/** Reports must not hold up a pipeline: this is all the time that one call may spend on waiting. */
export const MAX_WAIT_MS = 30_000;
export const MAX_RETRIES = 3;

const FIRST_PAUSE_MS = 1_000;
/** GitHub asks for at least a minute after a secondary limit that names no time. */
const UNNAMED_LIMIT_MS = 60_000;

/** What came back, as far as it matters for trying again. */
export interface Attempt {
  method: string;
  /** `undefined`: no answer at all. */
  status: number | undefined;
  headers: Readonly<Record<string, string | undefined>>;
  message: string;
  /** Code of a network error, for example ECONNREFUSED. */
  networkCode: string | undefined;
}

/** A 403 can mean "may not" and "too often"; only the second is worth waiting for. */
export function isRateLimited({ status, headers, message }: Attempt): boolean {
  if (status === 429) return true;
  if (status !== 403) return false;
  return (
    headers['retry-after'] !== undefined ||
    headers['x-ratelimit-remaining'] === '0' ||
    /rate limit|abuse detection/i.test(message)
  );
}

/** How long to wait before the next try; `undefined` when there must not be one. */
export function retryPauseMs(
  attempt: Attempt,
  tries: number,
  waitedMs: number,
  nowMs: number,
): number | undefined {
  if (tries > MAX_RETRIES || !mayRepeat(attempt)) return undefined;
  const pause = isRateLimited(attempt)
    ? limitPauseMs(attempt, nowMs)
    : FIRST_PAUSE_MS * 2 ** (tries - 1);
  return waitedMs + pause > MAX_WAIT_MS ? undefined : pause;
}

/** A second POST would be a second comment, so it is only sent when the first cannot have arrived. */
function mayRepeat(attempt: Attempt): boolean {
  if (isRateLimited(attempt)) return true;
  const isLost = attempt.status === undefined;
  if (attempt.method === 'POST') return isLost && NEVER_SENT.has(attempt.networkCode ?? '');
  return isLost || attempt.status === undefined || attempt.status >= 500;
}

const NEVER_SENT = new Set(['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN', 'UND_ERR_CONNECT_TIMEOUT']);

function limitPauseMs({ headers }: Attempt, nowMs: number): number {
  const after = Number(headers['retry-after']);
  if (headers['retry-after'] !== undefined && Number.isFinite(after))
    return Math.max(1, after) * 1_000;
  const reset = Number(headers['x-ratelimit-reset']);
  const isUsedUp = headers['x-ratelimit-remaining'] === '0';
  if (isUsedUp && Number.isFinite(reset) && reset > 0)
    return Math.max(1_000, reset * 1_000 - nowMs);
  return UNNAMED_LIMIT_MS;
}
