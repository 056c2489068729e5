import { test } from 'vitest';
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
