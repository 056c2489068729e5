import { expect, test } from 'vitest';
import { Throttle, type Try, type TryFailure, withRetries } from '../../src/kubernetes/retry.ts';
import { readFailed } from '../../src/model/read.ts';

const RESET = { kind: 'network', message: 'reset' } as const;
const broken = readFailed<TryFailure>({ ...RESET, again: 'maybe' });

async function run(
  attempts: readonly Try<string>[],
  retries?: number,
  random = 1,
): Promise<{ result: unknown; slept: number[]; tries: number }> {
  const slept: number[] = [];
  let tries = 0;
  const result = await withRetries(
    async () => attempts[Math.min(tries++, attempts.length - 1)] ?? broken,
    retries === undefined ? {} : { retries },
    {
      random: () => random,
      clock: {
        now: () => 0,
        sleep: async (ms) => {
          slept.push(ms);
        },
      },
    },
  );
  return { result, slept, tries };
}

test('each pause is longer, up to a limit, with none after the last attempt', async () => {
  const { slept, tries } = await run([broken], 6);
  expect(tries).toBe(7);
  expect(slept).toEqual([250, 500, 1_000, 2_000, 4_000, 4_000]);
});

test('half of each pause is random', async () => {
  expect((await run([broken], 2, 0)).slept).toEqual([125, 250]);
});

test('a request to a busy server is repeated more often than one to a failing server', async () => {
  expect((await run([readFailed({ ...RESET, again: 'busy' })])).tries).toBe(9);
  expect((await run([broken])).tries).toBe(4);
});

test('a request that cannot succeed later is not repeated', async () => {
  const { slept, tries, result } = await run([readFailed(RESET)], 5);
  expect({ slept, tries }).toEqual({ slept: [], tries: 1 });
  expect(result).toEqual({ ok: false, failure: RESET });
});

test('stopping during a pause ends it, without another try', async () => {
  const stop = new AbortController();
  let tries = 0;
  const result = await withRetries(
    async () => {
      tries++;
      return broken;
    },
    { signal: stop.signal },
    { random: () => 1, clock: { now: () => 0, sleep: async () => stop.abort() } },
  );
  expect(result).toMatchObject({ ok: false, failure: { kind: 'aborted' } });
  expect(tries).toBe(1);
});

test('a pause that the server asks for is kept, if it is longer than the pause of the gate', async () => {
  const { slept } = await run(
    [
      readFailed({ ...broken.failure, retryAfterMs: 3_000 }),
      readFailed({ ...broken.failure, retryAfterMs: 1 }),
    ],
    2,
  );
  expect(slept).toEqual([3_000, 500]);
});

test('a pause of more than 30 s is left to the caller', async () => {
  const { tries } = await run([readFailed({ ...broken.failure, retryAfterMs: 31_000 })], 3);
  expect(tries).toBe(1);
});

const fine: Try<string> = { ok: true, value: 'fine' };
const throttled: Try<string> = readFailed({ ...RESET, again: 'busy' });

/** Requests whose answers the test gives by hand, in any order. */
function requests(throttle: Throttle): {
  send: (signal?: AbortSignal) => Promise<Try<string>>;
  underWay: ((answer: Try<string>) => void)[];
} {
  const underWay: ((answer: Try<string>) => void)[] = [];
  const send = (signal?: AbortSignal): Promise<Try<string>> =>
    throttle.run(() => new Promise((resolve) => underWay.push(resolve)), signal);
  return { send, underWay };
}

const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

test('the throttle runs at most its width at once, the others in order', async () => {
  const { send, underWay } = requests(new Throttle(2));
  const order: number[] = [];
  const all = [0, 1, 2, 3].map((index) => send().then(() => order.push(index)));
  await settled();
  expect(underWay).toHaveLength(2);

  underWay[0]?.(fine);
  await settled();
  expect(underWay).toHaveLength(3);
  underWay[1]?.(fine);
  underWay[2]?.(fine);
  await settled();
  underWay[3]?.(fine);
  await Promise.all(all);
  expect(order).toEqual([0, 1, 2, 3]);
});

test('requests that are refused together halve the width once, the next refusals again, never below one', async () => {
  const throttle = new Throttle(8);
  const { send, underWay } = requests(throttle);
  const turnAway = async (count: number): Promise<void> => {
    const sent = Array.from({ length: count }, () => send());
    await settled();
    for (const answer of underWay.splice(0)) answer(throttled);
    await Promise.all(sent);
  };
  await turnAway(8);
  expect(throttle.width).toBe(4);
  await turnAway(4);
  expect(throttle.width).toBe(2);
  await turnAway(2);
  await turnAway(1);
  expect(throttle.width).toBe(1);
});

test('each round of answers adds one to the width, up to the initial width', async () => {
  const throttle = new Throttle(4);
  const { send, underWay } = requests(throttle);
  const answer = async (how: Try<string>): Promise<void> => {
    const sent = send();
    await settled();
    underWay.splice(0)[0]?.(how);
    await sent;
  };
  await answer(throttled);
  expect(throttle.width).toBe(2);
  await answer(fine);
  await answer(fine);
  expect(throttle.width).toBe(3);
  for (let round = 0; round < 20; round++) await answer(fine);
  expect(throttle.width).toBe(4);
});

test('a request that is stopped while waiting leaves the queue, and no other loses its turn', async () => {
  const { send, underWay } = requests(new Throttle(1));
  const stop = new AbortController();
  const first = send();
  const second = send(stop.signal);
  const third = send();
  stop.abort();
  expect(await second).toMatchObject({ failure: { kind: 'aborted' } });
  expect(await send(stop.signal)).toMatchObject({ failure: { kind: 'aborted' } });

  underWay[0]?.(fine);
  await first;
  await settled();
  underWay[1]?.(fine);
  expect(await third).toBe(fine);
});

test('work that throws frees its place', async () => {
  const throttle = new Throttle(1);
  const failing = throttle.run(() => Promise.reject(new Error('broken')), undefined);
  await expect(failing).rejects.toThrow('broken');
  expect(await throttle.run(async () => fine, undefined)).toBe(fine);
});
