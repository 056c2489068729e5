import type { Scenario } from '../scenario.ts';
import { agents } from './agents.ts';
import { apis } from './apis.ts';
import { everyday } from './everyday.ts';
import { kubelet } from './kubelet.ts';
import { lifecycle } from './lifecycle.ts';
import { owners } from './owners.ts';
import { pods } from './pods.ts';

/** The catalogue. What takes longest is first, so that nothing has to wait for it alone at the end. */
export const SCENARIOS: readonly Scenario[] = [
  ...everyday,
  ...owners,
  ...lifecycle,
  ...pods,
  ...apis,
  ...kubelet,
  ...agents,
];
