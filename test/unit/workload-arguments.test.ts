import { expect, test } from 'vitest';
import { workloadFacts } from '../../src/model/facts/workloads.ts';
import { expectPairs } from '../stub/pairs.ts';

test('what the arguments and variables of a controller leave out', () =>
  expectPairs('workload-arguments.txt', (line) => {
    const [container, ...others] = JSON.parse(`[${line}]`);
    const containers = [{ name: 'manager', ...container }, ...others];
    const { selectors, watches, limits } = workloadFacts(
      'apps/v1',
      'Deployment',
    )({
      metadata: { namespace: 'shop', name: 'one', uid: 'u' },
      spec: { template: { spec: { containers } } },
    });
    return { selectors, watches, limits };
  }));

test.each([
  [{ command: ['/manager', '--leader-elect'] }, ['manager', 'bot']],
  [{ command: ['sh', '-c', 'kopf run bot.py'] }, ['sh', 'kopf', 'bot']],
  [{ command: ['python', '-m'], args: ['kopf', 'run'] }, ['python', 'kopf', 'bot']],
  [{ args: ['/usr/bin/bot-operator'] }, ['bot-operator', 'bot']],
])('the names of the program that %j starts', (how, programs) => {
  const containers = [{ name: '', image: 'acme/bot:3', ...how }];
  const workload = {
    metadata: { namespace: 'shop', name: 'one', uid: 'u' },
    spec: { template: { spec: { containers } } },
  };
  expect(workloadFacts('apps/v1', 'Deployment')(workload).programs).toEqual(programs);
});
