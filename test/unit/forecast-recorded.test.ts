import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { diagnose } from '../../src/diagnose/diagnose.ts';
import { forecastOf } from '../../src/forecast/outcome.ts';
import { basisOf, foresee } from '../../src/forecast/predict.ts';
import { podFacts } from '../../src/model/facts/workloads.ts';
import { outcomeOf } from '../../src/model/outcome.ts';
import { readFailed, readOk } from '../../src/model/read.ts';
import type { Snapshot } from '../../src/model/snapshot.ts';
import { renderText } from '../../src/report/plain-text.ts';
import { viewOf } from '../../src/report/view.ts';
import { FORESEEN, idOf } from '../cluster/foreseen.ts';
import { rootsOf } from '../cluster/foresight.ts';
import { EVERYDAY } from '../cluster/scenarios/everyday.ts';
import { foretold, runOf } from '../stub/results.ts';
import { deployment } from './changes.ts';
import {
  expectationIn,
  FORECAST,
  type RecordedForecast,
  readRecordedForecast,
  readRecordedLook,
  recordingNames,
  rewound,
} from './recorded-looks.ts';

const recorded = recordingNames()
  .filter((name) => name.endsWith(FORECAST))
  .map((name) => name.slice(0, -FORECAST.length));
/** Hangs. The others are situations of the tests of forecasts. */
const names = recorded.filter((name) => !name.startsWith('foreseen-'));
const hangs = recordingNames().filter((name) => !name.endsWith(FORECAST));

/** Its owner puts the finalizer back only when it is being deleted. */
const PUTS_BACK = 'S46';
/** Hangs that a forecast calls clear, by the reason: nothing before the deletion shows them. */
const BEGIN_LATER: Record<string, string> = {
  'its owner runs and does nothing, which only the deletion shows':
    'S61-alive blocked-without-date event-instance made-ack-s3-moved made-own-leader-by-uuid other-classes made-agent-with-marks made-class-beside-account made-company-on-map made-domain-operator',
  'the cloud provider runs its owner, and its status shows that it does': 'cloud-nodes',
  'an extension API is never sent a dry run, since it may ignore that it is one': 'SEED-4d-500',
  'a kubelet that reports itself as ready does not confirm':
    'SEED-5a unmount-fails cni-gone cni-gone-told csi-gone dra-gone runtime-fails',
  'kube-controller-manager runs, and nothing shows which of its controllers do not': 'unexplained',
};

const idsIn = (table: Record<string, string>): string[][] =>
  Object.values(table).map((ids) => ids.trim().split(/\s+/));

function outcome({ now, isPodsFirst }: Pick<RecordedForecast, 'now' | 'isPodsFirst'>): string {
  return forecastOf(foresee(now, isPodsFirst));
}

describe('a recorded situation is forecast as on the control plane:', () => {
  const situations = recorded.filter((name) => !names.includes(name));

  test('all of them are recorded', () => {
    expect(situations).toEqual(expect.arrayContaining(FORESEEN.map(idOf)));
  });

  test.each(situations)('%s', (id) => {
    const live = FORESEEN.find((one) => idOf(one) === id);
    const told = live ?? expectationIn(readRecordedForecast(id));
    const { outcome: expected = 'clear', says = /^/ } = told;
    const result = foretold(id);
    const words = `${rootsOf(result).join()} ${renderText(viewOf(runOf([result], { kind: 'forecast' })))}`;
    expect(result.outcome, words).toBe(expected);
    expect(words).toMatch(says);
  });
});

describe('a forecast calls no hang clear', () => {
  test.each(names)('%s, forecast before its deletion', (name) => {
    const { now, before } = readRecordedLook(name);
    expect(outcomeOf(diagnose(now, before))).toMatch(/^(?:stuck|inconclusive)$/);
    const isClear = outcome(readRecordedForecast(name)) === 'clear';
    expect(isClear).toBe(name === PUTS_BACK);
  });

  test('any other, rewound to before its deletion, but for those that are listed', () => {
    const clear = hangs.filter((name) => {
      const { now, before, beginsLater } = readRecordedLook(name);
      const foreseen = outcome({ now: rewound({ now }), isPodsFirst: false });
      const isHidden = foreseen === 'clear' && outcomeOf(diagnose(now, before)) === 'stuck';
      return isHidden !== (beginsLater !== undefined);
    });
    const listed = idsIn(BEGIN_LATER).flat();
    const later = EVERYDAY.filter(({ beginsLater }) => beginsLater).map(({ id }) => id);
    expect(clear.filter((name) => !later.includes(name)).toSorted()).toEqual(listed.toSorted());
  });
});

describe('every forecast', () => {
  /** Recorded ones, of which few are clear, and some of the hangs that were rewound. */
  const all = [
    ...names.map(readRecordedForecast),
    ...idsIn(BEGIN_LATER)
      .flatMap((ids) => ids.slice(0, 3))
      .map((name) => {
        const looks = readRecordedLook(name);
        return { ...looks, now: rewound(looks), isPodsFirst: false };
      }),
  ];

  test('with an unread source of the cluster is not clear', () => {
    for (const { scenario, now, isPodsFirst } of all) {
      for (const source of Object.keys(now.cluster)) {
        const failure = { kind: 'forbidden', status: 403, message: '403 Forbidden' } as const;
        const unread = [...now.unread, { source, what: source, reason: failure.message }];
        const cluster = { ...now.cluster, [source]: readFailed(failure) };
        const blind = outcome({ now: { ...now, cluster, unread }, isPodsFirst });
        expect(blind, `${scenario} without ${source}`).not.toBe('clear');
      }
    }
  });

  test('stays the same beside a running Deployment that has nothing to do with it', () => {
    fc.assert(
      fc.property(fc.constantFrom(...all), fc.stringMatching(/^z[a-z]{3,12}$/), (one, name) => {
        const { deployments } = one.now.cluster;
        if (deployments?.ok !== true) return;
        // Without any right.
        const more = readOk([...deployments.value, deployment(name, name)]);
        const now = { ...one.now, cluster: { ...one.now.cluster, deployments: more } };
        expect(outcome({ ...one, now })).toBe(outcome(one));
      }),
      { numRuns: 60, seed: 27 },
    );
  });

  test('asks about a pod with a grace period of more than an hour, whatever else it finds', () => {
    const withGrace = (one: Snapshot, graceSeconds: number): Snapshot => {
      const web = podFacts({
        metadata: { name: 'web', namespace: one.namespace.name, uid: 'web' },
        spec: { terminationGracePeriodSeconds: graceSeconds, nodeName: 'node-1', containers: [] },
        status: { phase: 'Running' },
      });
      const { present, ...forecast } = one.forecast ?? { present: undefined };
      const before = present?.pods.ok ? present.pods.value : [];
      const changed = { ...present, pods: readOk([...before, web]) };
      return { ...one, forecast: { ...forecast, present: changed } } as Snapshot;
    };
    const seen = all.map((one) =>
      [604_800, 3_600].map((seconds) => outcome({ ...one, now: withGrace(one.now, seconds) })),
    );
    const usual = all.map(outcome);
    expect(seen.map(([, short]) => short)).toEqual(usual);
    expect(seen.map(([long]) => long)).toEqual(
      usual.map((one) => (one === 'clear' ? 'inconclusive' : one)),
    );
    expect(usual).toContain('clear');
  });

  test('that is clear names an owner for each finalizer', () => {
    for (const { scenario, now, isPodsFirst } of all) {
      const foreseen = foresee(now, isPodsFirst);
      if (forecastOf(foreseen) !== 'clear') continue;
      expect(basisOf(now, foreseen).owners, scenario).not.toContain('unknown');
    }
  });
});
