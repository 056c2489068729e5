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

const after = (retryAfterMs: number) => readFailed({ ...broken.failure, retryAfterMs });
const busy = readFailed<TryFailure>({ ...RESET, again: 'busy' });

test.each<
  [what: string, attempts: Try<string>[], retries: number, random: number, slept: number[]]
>([
  ['each longer, up to a limit', [broken], 6, 1, [250, 500, 1_000, 2_000, 4_000, 4_000]],
  ['half of them random', [broken], 2, 0, [125, 250]],
  ['as long as the server asks for, if longer', [after(3_000), after(1)], 2, 1, [3_000, 500]],
  ['left to the caller if longer than 30 s', [after(31_000)], 3, 1, []],
  ['none if the request cannot succeed later', [readFailed(RESET)], 5, 1, []],
])('pauses are %s', async (_, attempts, retries, random, pauses) => {
  const { slept, tries, result } = await run(attempts, retries, random);
  expect({ slept, tries }).toEqual({ slept: pauses, tries: pauses.length + 1 });
  expect(result).toMatchObject({ ok: false, failure: RESET });
});

test('a request to a busy server is repeated more often than one to a failing server', async () => {
  expect((await run([busy])).tries).toBe(9);
  expect((await run([broken])).tries).toBe(4);
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

const fine: Try<string> = { ok: true, value: 'fine' };

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

test('refusals together halve the width once, never below one; each round of answers adds one, up to the first', async () => {
  const throttle = new Throttle(8);
  const { send, underWay } = requests(throttle);
  const round = async (how: Try<string>, count = 1): Promise<number> => {
    const sent = Array.from({ length: count }, () => send());
    await settled();
    for (const answer of underWay.splice(0)) answer(how);
    await Promise.all(sent);
    return throttle.width;
  };
  expect([await round(busy, 8), await round(busy, 4), await round(busy, 2)]).toEqual([4, 2, 1]);
  expect([await round(busy), await round(fine)]).toEqual([1, 2]);
  expect([await round(fine), await round(fine)]).toEqual([2, 3]);
  for (let again = 0; again < 60; again++) await round(fine);
  expect(throttle.width).toBe(8);
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
