import type { Scenario } from '../scenario.ts';
import { access } from './access.ts';
import { advice } from './advice.ts';
import { deadApis } from './dead-apis.ts';
import { denials } from './denials.ts';
import { everyday } from './everyday.ts';
import { extensionApis } from './extension-apis.ts';
import { finalizers } from './finalizers.ts';
import { jobPods } from './job-pods.ts';
import { kubelet } from './kubelet.ts';
import { lifecycle } from './lifecycle.ts';
import { livingOwners } from './living-owners.ts';
import { logs } from './logs.ts';
import { namespaceController } from './namespace-controller.ts';
import { namespaceFinalizers } from './namespace-finalizers.ts';
import { owners } from './owners.ts';
import { pods } from './pods.ts';
import { podsAndNodes } from './pods-and-nodes.ts';
import { strangers } from './strangers.ts';
import { unreadableTypes } from './unreadable-types.ts';
import { volumes } from './volumes.ts';
import { webhooks } from './webhooks.ts';
import { whose } from './whose.ts';
import { why } from './why.ts';

/** The catalogue. What takes longest is first, so that nothing has to wait for it alone at the end. */
export const SCENARIOS: readonly Scenario[] = [
  ...everyday,
  ...livingOwners,
  ...lifecycle,
  ...finalizers,
  ...owners,
  ...whose,
  ...why,
  ...logs,
  ...advice,
  ...strangers,
  ...namespaceFinalizers,
  ...pods,
  ...podsAndNodes,
  ...jobPods,
  ...volumes,
  ...deadApis,
  ...extensionApis,
  ...unreadableTypes,
  ...namespaceController,
  ...webhooks,
  ...denials,
  ...access,
  ...kubelet,
];
