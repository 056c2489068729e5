import type { Scenario } from '../scenario.ts';
import type { World } from '../world.ts';
import { FULL, type OperatorOptions, rule } from './operator.ts';
import { type Step, situation, writesStatus } from './situation.ts';

/** A backup product protects what belongs to others. */
const backup =
  (more: OperatorOptions = {}) =>
  (world: World): OperatorOptions => {
    const group = world.domain('backup.example.org');
    return {
      name: 'vault-backup',
      namespace: 'backup-system',
      finalizer: `${group}/protect`,
      rules: [rule(world.domain('example.com'), ['widgets'], FULL), rule(group, ['backups'], FULL)],
      ...more,
    };
  };

/** Works on its type as ever, with its name in the status of every object. */
const widgetOperator: OperatorOptions = { name: 'widget-operator' };

const reportsStatus: Step = writesStatus({ conditions: [], phase: 'Ready' }, 'widget-operator');

export const whose: Scenario[] = [
  situation({
    id: 'S61-alive',
    title: 'the backup operator runs; the operator of the type has 0 replicas',
    operator: backup(),
    bystanders: [{ ...widgetOperator, replicas: 0 }],
    afterwards: reportsStatus,
    owner: 'owner-running',
  }),
];
