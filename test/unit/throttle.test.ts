import { expect, test } from 'vitest';
import { Throttle } from '../../src/kubernetes/retry.ts';

type Answer = 'ok' | 'throttled';

/** Requests whose answers the test gives by hand, in any order. */
function requests(throttle: Throttle): {
  send: (signal?: AbortSignal) => Promise<Answer>;
  underWay: ((answer: Answer) => void)[];
} {
  const underWay: ((answer: Answer) => void)[] = [];
  const send = (signal?: AbortSignal): Promise<Answer> =>
    throttle.run(
      () => new Promise<Answer>((resolve) => underWay.push(resolve)),
      (answer) => answer === 'throttled',
      signal,
    );
  return { send, underWay };
}

const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

test('no more than its width at once, the others in the order they came', async () => {
  const { send, underWay } = requests(new Throttle(2));
  const order: number[] = [];
  const all = [0, 1, 2, 3].map((index) => send().then(() => order.push(index)));
  await settled();
  expect(underWay).toHaveLength(2);

  underWay[0]?.('ok');
  await settled();
  expect(underWay).toHaveLength(3);
  underWay[1]?.('ok');
  underWay[2]?.('ok');
  await settled();
  underWay[3]?.('ok');
  await Promise.all(all);
  expect(order).toEqual([0, 1, 2, 3]);
});

test('what was turned away together halves the width once, the next time again, never below one', async () => {
  const throttle = new Throttle(8);
  const { send, underWay } = requests(throttle);
  const turnAway = async (count: number): Promise<void> => {
    const sent = Array.from({ length: count }, () => send());
    await settled();
    for (const answer of underWay.splice(0)) answer('throttled');
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

test('answers widen it again, one for each round of answers, to what it was', async () => {
  const throttle = new Throttle(4);
  const { send, underWay } = requests(throttle);
  const answer = async (how: Answer): Promise<void> => {
    const sent = send();
    await settled();
    underWay.splice(0)[0]?.(how);
    await sent;
  };
  await answer('throttled');
  expect(throttle.width).toBe(2);
  await answer('ok');
  await answer('ok');
  expect(throttle.width).toBe(3);
  for (let round = 0; round < 20; round++) await answer('ok');
  expect(throttle.width).toBe(4);
});

test('who is stopped while waiting leaves the queue, and nobody loses a turn', async () => {
  const { send, underWay } = requests(new Throttle(1));
  const stop = new AbortController();
  const first = send();
  const second = send(stop.signal);
  const third = send();
  stop.abort(new Error('enough'));
  await expect(second).rejects.toThrow('enough');
  await expect(send(stop.signal)).rejects.toThrow('enough');

  underWay[0]?.('ok');
  await first;
  await settled();
  underWay[1]?.('ok');
  expect(await third).toBe('ok');
});

test('work that fails gives its turn back', async () => {
  const throttle = new Throttle(1);
  const broken = throttle.run(
    () => Promise.reject(new Error('broken')),
    () => false,
    undefined,
  );
  await expect(broken).rejects.toThrow('broken');
  const next = throttle.run(
    async () => 'fine',
    () => false,
    undefined,
  );
  expect(await next).toBe('fine');
});
