import type { JsonObject } from '../../../src/base/json.ts';
import type { Scenario } from '../scenario.ts';
import { HANGS, type Step, settledByFinalizer, situation, writesStatus } from './situation.ts';

/** Signs of a failure, of a permission or of a scope that are easily misread. */

/** Statuses as products write them while a deletion fails, and the words that must be quoted. */
const FAILURES: Record<string, [status: JsonObject, says: RegExp]> = {
  recoverable: [
    {
      conditions: [
        {
          type: 'ACK.Recoverable',
          status: 'True',
          message: 'operation error S3: DeleteBucket, StatusCode: 409, BucketNotEmpty',
        },
      ],
    },
    /BucketNotEmpty/,
  ],
  'failure-message': [
    {
      phase: 'Failed',
      failureReason: 'DeleteError',
      failureMessage: 'failed to terminate instance i-1: OptInRequired',
    },
    /OptInRequired/,
  ],
};

const says =
  (status: JsonObject): Step =>
  async (world, operator) => {
    await settledByFinalizer(world);
    await writesStatus(status, operator.manager)(world, operator);
  };

export const misread: Scenario[] = [
  ...Object.entries(FAILURES).map(([name, [status, words]]) =>
    situation({
      id: `told-by-${name}`,
      title: `the status tells the failure by ${name}`,
      behaviour: HANGS,
      settle: says(status),
      owner: { code: 'owner-failing', says: [words] },
    }),
  ),
];
