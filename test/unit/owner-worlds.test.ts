import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { diagnose } from '../../src/diagnose/diagnose.ts';
import type { Diagnosis, Finding } from '../../src/model/finding.ts';
import { isPermanent } from '../../src/model/outcome.ts';
import { readOk } from '../../src/model/read.ts';
import type { Snapshot } from '../../src/model/snapshot.ts';
import { account, binding, deployment, role } from './changes.ts';
import { look, OWNER, ownerName, type World, worlds } from './owner-worlds.ts';
import { DEMO, EARLIER } from './snapshots.ts';

/** Other worlds in each run. */
const COUNT = 1_000;

/** Looks twice, and nothing has moved in between. */
function diagnoseAgain(now: Snapshot): Diagnosis {
  return diagnose(now, { ...now, takenAt: EARLIER });
}

function tell(world: World) {
  const now = look(world);
  const diagnosis = diagnoseAgain(now);
  return {
    ...{ diagnosis, hasUnread: now.unread.length > 0 },
    /** What is said about whose the finalizer is; undefined where the owner is presumed to do its work. */
    owner: diagnosis.findings.find(({ code }) => code.startsWith('owner-')),
    held: diagnosis.findings.filter(({ code }) => code === 'object-finalizer'),
  };
}
type Told = ReturnType<typeof tell>;

function nameOf({ subject: { kind, namespace, name } }: Finding): string {
  return `${kind} ${namespace}/${name}`;
}

/**
 * What the gate saw in the namespace before it was deleted: a workload with the owner's name, and a Role for it, which
 * was deleted with it.
 */
function copyWith(verbs: string[]): NonNullable<Snapshot['baseline']> {
  const name = 'keeper';
  const keeper = { ...role(name, [], {}, DEMO), namespace: DEMO };
  const resources = ['widgets', 'configmaps'];
  keeper.rules = [{ apiGroups: ['example.com', ''], resources, resourceNames: [], verbs }];
  const bound = binding(name, [account(DEMO, OWNER)], { namespace: DEMO }, 'Role');
  return {
    workloads: readOk([{ ...deployment(DEMO, OWNER), uid: 'uid-of-the-copy' }]),
    ...{ roles: readOk([keeper]), roleBindings: readOk([bound]), events: readOk([]) },
  };
}

const NAMES_NOBODY = ['owner-missing', 'owner-unknown'];

/**
 * Of a program that is gone, another installation is left which watches other namespaces: it is named, with that as its
 * state.
 */
function isLeftOut({ owner, others }: World, { code }: Finding): boolean {
  return (
    owner.state === 'gone' &&
    others.includes('install for another namespace') &&
    code === 'owner-not-acting'
  );
}

/** It is there, whatever its state; or it runs where only its rights can be seen. */
function isThere({ owner: { state } }: World): boolean {
  return state !== 'gone';
}

const everywhere = fc.sample(worlds, COUNT).map((world) => ({ world, told: tell(world) }));

function always(holds: (told: Told, world: World) => void): void {
  for (const { told, world } of everywhere) {
    try {
      holds(told, world);
    } catch (error) {
      throw new Error(`${error}\nin ${JSON.stringify(world)}`, { cause: error });
    }
  }
}

describe('in any cluster', () => {
  test('only the owner is named, if everything could be read; with certainty, only the owner', () => {
    always(({ owner, hasUnread }, world) => {
      if (owner === undefined || NAMES_NOBODY.includes(owner.code)) return;
      const isSure = owner.certainty === 'proven';
      if (!isSure && isLeftOut(world, owner))
        expect(nameOf(owner)).toBe(`Deployment tools/${OWNER}`);
      // The only one that may change the object and is down explains the hang best.
      else if (!isSure && nameOf(owner) === 'Deployment tools/widget-annotator')
        expect([owner.code, world.writer === 'owner']).toEqual(['owner-scaled-to-zero', false]);
      else if (isSure || !hasUnread) expect(nameOf(owner)).toBe(ownerName(world));
      if (isSure) return;
      // What is not certain is who the owner is, or why it does not act.
      expect(owner.message).toMatch(/most likely|\bmay\b/);
    });
  });

  test('no existing controller is called missing', () => {
    always(({ owner }, world) => {
      if (isThere(world)) expect(owner?.code).not.toBe('owner-missing');
    });
  });

  test('nothing is permanent while a source could not be read, or while its owner runs', () => {
    always(({ diagnosis, hasUnread }, { owner: { state } }) => {
      if (hasUnread || ['runs', 'outside', 'crashes'].includes(state))
        expect(isPermanent(diagnosis)).toBe(false);
    });
  });

  test('an existing owner is never called deleted with the namespace, even if a copy of it was', () => {
    const baselines = { writes: copyWith(['*']), reads: copyWith(['get', 'list', 'watch']) };
    const calledDeleted = { writes: 0, reads: 0 };
    always((_, world) => {
      for (const who of ['writes', 'reads'] as const) {
        const now = { ...look(world), baseline: baselines[who] };
        const missing = diagnoseAgain(now).findings.find(
          ({ code, certainty }) => code === 'owner-missing' && certainty === 'proven',
        );
        if (missing !== undefined) calledDeleted[who]++;
        if (isThere(world) || now.unread.length > 0) expect(missing).toBeUndefined();
      }
    });
    // Few worlds have nobody else who may change the type. That an owner is called so at all, the tests of forcing show.
    expect(calledDeleted.reads).toBeLessThanOrEqual(calledDeleted.writes);
  });

  test("the spelling of the owner's name as a field manager changes nothing", () => {
    const spelled = (text: string): string =>
      text.replaceAll(`"manager":"${OWNER}"`, '"manager":"KeeperOperator"');
    always(({ owner }, world) => {
      const other = diagnoseAgain(JSON.parse(spelled(JSON.stringify(look(world)))));
      const found = other.findings.find(({ code }) => code.startsWith('owner-'));
      expect([found?.code, found?.subject, found?.certainty]).toEqual([
        owner?.code,
        owner?.subject,
        owner?.certainty,
      ]);
    });
  });

  test('a held finalizer has a finding about its owner', () => {
    always(({ held, owner }) => {
      expect(held).toHaveLength(1);
      expect(owner).toBeDefined();
    });
  });
});
