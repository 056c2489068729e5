import { stringAt } from '../../../src/base/json.ts';
import type { Ref } from '../client.ts';
import { customType } from '../objects.ts';
import type { Scenario } from '../scenario.ts';
import type { World } from '../world.ts';
import { type Operator, operatorRules, READ, rule } from './operator.ts';
import { guardedRef, HANGS, type Situation, situation } from './situation.ts';

/** The controller runs and will not act. */

const DEFINITION = 'ResourceGraphDefinition';

const definition = (world: World, operator: Operator): Ref => ({
  apiVersion: `${operator.group}/v1`,
  kind: DEFINITION,
  name: world.name('web-app'),
});

async function createDefinition(world: World, operator: Operator): Promise<void> {
  const { apiVersion, kind, name } = definition(world, operator);
  await world.create({ apiVersion, kind, metadata: { name }, spec: {} });
}

/** As kro labels each object of a type that a definition has made: with the name of the definition. */
const defined = (
  id: string,
  title: string,
  given: Pick<Situation, 'owner' | 'behaviour' | 'cure'> & { isGone: boolean; domain?: string },
): Scenario => {
  const { isGone, domain, ...rest } = given;
  return situation({
    id,
    title,
    operator: (world) => {
      const group = world.domain('example.com');
      const rules = operatorRules({ group, kind: 'Widget' });
      return { rules: [...rules, rule(group, ['resourcegraphdefinitions'], READ)] };
    },
    before: async (world, { group }) => {
      await world.createType(customType({ group, kind: DEFINITION, scope: 'Cluster' }));
    },
    afterwards: async (world, operator) => {
      const { name } = definition(world, operator);
      const label = `${domain ?? operator.group}/resource-graph-definition-name`;
      await world.client.patch(guardedRef(world, operator), {
        metadata: { labels: { [label]: name } },
      });
      if (!isGone) await createDefinition(world, operator);
    },
    ...rest,
  });
};

const servesDefinedTypes: Situation['behaviour'] = {
  tells: false,
  cleanUp: async (object, client, operator) => {
    const label = `${operator.group}/resource-graph-definition-name`;
    const name = stringAt(object, 'metadata', 'labels', label) ?? '';
    const found = await client.find({ apiVersion: `${operator.group}/v1`, kind: DEFINITION, name });
    return found === undefined ? 'not served' : undefined;
  },
};

export const notActing: Scenario[] = [
  defined('definition-gone', 'the definition by which the operator serves the type is gone', {
    isGone: true,
    behaviour: servesDefinedTypes,
    owner: {
      code: 'owner-not-acting',
      says: [/ResourceGraphDefinition .* does not exist/],
      advises: [/Create ResourceGraphDefinition .* again/],
    },
    cure: createDefinition,
  }),
  defined('definition-there', 'the definition is there; the operator hangs', {
    isGone: false,
    behaviour: HANGS,
    owner: 'owner-running',
  }),
  defined('definition-of-another', 'a label of another product names a definition that is gone', {
    isGone: true,
    domain: 'other.example.org',
    behaviour: HANGS,
    owner: 'owner-running',
  }),
];
