import type { Scenario } from '../scenario.ts';
import { access } from './access.ts';
import { advice } from './advice.ts';
import { behind } from './behind.ts';
import { beyond } from './beyond.ts';
import { cannot } from './cannot.ts';
import { chains } from './chains.ts';
import { contradicted } from './contradicted.ts';
import { deadApis } from './dead-apis.ts';
import { decoys } from './decoys.ts';
import { denials } from './denials.ts';
import { everyday } from './everyday.ts';
import { extensionApis } from './extension-apis.ts';
import { finalizers } from './finalizers.ts';
import { jobPods } from './job-pods.ts';
import { knownProducts } from './known-needs.ts';
import { kubelet } from './kubelet.ts';
import { latecomers } from './latecomers.ts';
import { lifecycle } from './lifecycle.ts';
import { livingOwners } from './living-owners.ts';
import { logs } from './logs.ts';
import { manyObjects } from './many.ts';
import { namespaceController } from './namespace-controller.ts';
import { namespaceFinalizers } from './namespace-finalizers.ts';
import { neighbours } from './neighbours.ts';
import { newcomers } from './newcomers.ts';
import { notActing } from './not-acting.ts';
import { obstacles } from './obstacles.ts';
import { omnibus } from './omnibus.ts';
import { owners } from './owners.ts';
import { plainSight } from './plain-sight.ts';
import { pods } from './pods.ts';
import { podsAndNodes } from './pods-and-nodes.ts';
import { products } from './products.ts';
import { rooted } from './rooted.ts';
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
  ...manyObjects,
  ...cannot,
  ...advice,
  ...notActing,
  ...beyond,
  ...chains,
  ...behind,
  ...neighbours,
  ...strangers,
  ...newcomers,
  ...rooted,
  ...latecomers,
  ...contradicted,
  ...plainSight,
  ...decoys,
  ...obstacles,
  ...products,
  ...knownProducts,
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
  ...omnibus,
  ...access,
  ...kubelet,
];
