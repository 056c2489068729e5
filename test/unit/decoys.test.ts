import { expect, test } from 'vitest';
import { diagnose } from '../../src/diagnose/diagnose.ts';
import { foresee } from '../../src/forecast/predict.ts';
import type { Diagnosis } from '../../src/model/finding.ts';
import type { Snapshot } from '../../src/model/snapshot.ts';
import { inBusyCluster, withDecoys } from './decoys.ts';
import { FORECAST, readRecordedLook, recordingNames, rewound } from './recorded-looks.ts';

/** What is about something else changes no answer: each recording is diagnosed and foreseen again beside it. */
const told = ({ findings, rootCauses }: Diagnosis) => ({
  findings: findings.map(({ code, subject, certainty, message }) => ({
    ...{ code, subject, certainty, message },
  })),
  rootCauses,
});

/** Causes alone: what may change everything takes away proof, and is named as evidence. */
const causes = ({ findings, rootCauses }: Diagnosis) => ({
  findings: findings.map(({ code, subject }) => ({ code, subject })),
  rootCauses,
});

const names = recordingNames().filter((name) => !name.endsWith(FORECAST));

const inAnyOrder = (of: Diagnosis) =>
  causes(of)
    .findings.map((one) => JSON.stringify(one))
    .sort();

/** What does not count changes no answer; software that most clusters have and the order of what was read, no cause. */
const CHANGES: [change: (now: Snapshot) => Snapshot, tell: (of: Diagnosis) => unknown][] = [
  [withDecoys, told],
  [inBusyCluster, causes],
  [reversed, inAnyOrder],
];

test.each(names)('%s is the same beside what does not count', (name) => {
  const { now, before } = readRecordedLook(name);
  const ahead = rewound({ now });
  const [hang, foreseen] = [diagnose(now, before), foresee(ahead, false)];
  for (const [change, tell] of CHANGES) {
    expect(tell(diagnose(change(now), before)), change.name).toEqual(tell(hang));
    expect(tell(foresee(change(ahead), false)), change.name).toEqual(tell(foreseen));
  }
});

test('the controllers of a cloud are no suspects of a load balancer of others', () => {
  const ofOthers = <T>(one: T): T =>
    JSON.parse(
      JSON.stringify(one)
        .replaceAll('service.kubernetes.io/load-balancer-cleanup', 'service.k8s.aws/resources')
        .replaceAll('cloud-controller-manager', 'aws-load-balancer-controller'),
    );
  const { now, before } = ofOthers(readRecordedLook('S31'));
  expect(diagnose(inBusyCluster(now), before).rootCauses).toEqual([
    expect.stringMatching(/^owner-missing:Service/),
  ]);
});

function reversed(now: Snapshot): Snapshot {
  const all = <T extends object>(reads: T): T =>
    Object.fromEntries(
      Object.entries(reads).map(([key, read]) => [
        key,
        read?.ok && Array.isArray(read.value) ? { ...read, value: read.value.toReversed() } : read,
      ]),
    ) as T;
  return {
    ...now,
    content: now.content.toReversed(),
    cluster: all(now.cluster),
    places: Object.fromEntries(Object.entries(now.places).map(([key, one]) => [key, all(one)])),
  };
}
