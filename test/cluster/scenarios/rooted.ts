import { ref } from './links.ts';
import { NAMELESS, operatorOf, READ, rule, uninstall } from './operator.ts';
import { GUARDED, nobodyLeft, owner, RIGHTS, releaseGuarded, situation } from './situation.ts';

/**
 * What operators that people run look like, by other names. Where names or cluster-wide rights count, alone: others on
 * the cluster are called alike.
 */

/** Written by a part of the program that has a name of its own: kro labels objects as `kro.run/labeller`. */
const BY_A_PART = { manager: 'widgets.example.com/labeller' };

/** Rights on types that come and go are in a ClusterRole of their own, which may be deleted first. */
const lostRole = situation({
  id: 'S86-role',
  own: true,
  title: 'the role for just this type is gone; the operator has others for its group',
  operator: (world) => ({
    ...BY_A_PART,
    rules: [rule(operatorOf(world).group, ['definitions'], ['*'])],
  }),
  behaviour: { tells: false },
  afterwards: (world, operator) => writeStatus(world, operator, operator.name),
  owner: (_, operator) => [
    owner(operator, 'owner-failing', { says: [/neither update nor patch/] }),
  ],
  cure: releaseGuarded,
  mayChange: () => RIGHTS,
});

async function writeStatus(
  world: Parameters<typeof releaseGuarded>[0],
  operator: ReturnType<typeof operatorOf>,
  manager: string,
): Promise<void> {
  const apiVersion = `${operator.group}/${operator.version}`;
  await world.client.patchStatus(
    ref(apiVersion, operator.kind, world.namespace, GUARDED),
    { phase: 'Ready' },
    { fieldManager: manager },
  );
}

const CONSOLE = { name: 'console', namespace: 'tools' };

const accountLeft = situation({
  id: 'S89',
  title: 'the rights of the nameless operator are left, and a web console may change its objects',
  operator: NAMELESS,
  bystanders: (world) => [
    {
      ...CONSOLE,
      rules: [rule(operatorOf(world).group, ['widgets'], [...READ, 'update', 'patch', 'delete'])],
    },
  ],
  afterwards: (world, operator) => uninstall(world, operator, ['rights', 'account']),
  owner: (_, operator) => [
    {
      ...nobodyLeft(operator),
      certainty: ['likely'],
      says: [new RegExp(`ran as ServiceAccount ${operator.namespace}/${operator.name}`)],
    },
  ],
  cure: releaseGuarded,
});

export const rooted = [lostRole, accountLeft];
