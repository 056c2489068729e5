import type { Scenario } from '../scenario.ts';
import { HANGS, releaseGuarded, situation } from './situation.ts';

/** Owners that leave few traces, and could be mistaken for missing or for others. */
export const origins: readonly Scenario[] = [
  situation({
    id: 'two-classes',
    title: 'two installations of one program reconcile different classes, and one has 0 replicas',
    operator: { container: { args: ['--widget-class=blue'] } },
    behaviour: HANGS,
    bystanders: [
      {
        ...{ name: 'widget-operator-green', manager: 'widget-operator', replicas: 0 },
        container: { args: ['--widget-class=green'] },
      },
    ],
    owner: 'owner-unknown',
    cure: releaseGuarded,
  }),
];
