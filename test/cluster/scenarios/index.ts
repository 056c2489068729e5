import type { Scenario } from '../scenario.ts';
import { access } from './access.ts';
import { apiFaults } from './api-faults.ts';
import { deadApis } from './dead-apis.ts';
import { finalizers } from './finalizers.ts';
import { lifecycle } from './lifecycle.ts';
import { namespaceFinalizers } from './namespace-finalizers.ts';
import { owners } from './owners.ts';
import { pods } from './pods.ts';
import { webhooks } from './webhooks.ts';

/** The catalogue: every situation that a control plane without nodes can show. */
export const SCENARIOS: readonly Scenario[] = [
  ...lifecycle,
  ...finalizers,
  ...owners,
  ...namespaceFinalizers,
  ...pods,
  ...deadApis,
  ...apiFaults,
  ...webhooks,
  ...access,
];
