import type { JsonObject } from '../../src/base/json.ts';
import { diagnose } from '../../src/diagnose/diagnose.ts';
import { bindingFacts, roleFacts } from '../../src/model/facts/cluster.ts';
import { workloadFacts } from '../../src/model/facts/workloads.ts';
import type { ObjectFacts, RoleFacts, Snapshot, WorkloadFacts } from '../../src/model/snapshot.ts';
import type { ClusterSources } from '../../src/model/sources.ts';
import { readRecordedLook } from './recorded-looks.ts';

/** A recorded hang that differs in one thing, and what the diagnosis says of it. */

export type Change = (now: Snapshot) => unknown;

export function told(
  recording: string,
  change: Change = () => {},
  spelled: (text: string) => string = (text) => text,
) {
  const looks = JSON.parse(spelled(JSON.stringify(readRecordedLook(recording))));
  change(looks.now);
  const diagnosis = diagnose(looks.now, looks.before);
  const { findings, rootCauses } = diagnosis;
  const owners = findings.filter(({ code }) => code.startsWith('owner-'));
  const roots = findings.filter(({ id }) => rootCauses.includes(id));
  const [owner] = owners;
  const root = roots.find(({ id }) => id === rootCauses[0]);
  if (root === undefined) throw new Error(`${recording} has no root cause`);
  return { findings, rootCauses, owners, owner, roots, root };
}

/** What was read of the cluster, to be changed in place. */
export function listed<K extends keyof ClusterSources>({ cluster }: Snapshot, source: K) {
  const read = cluster[source];
  if (!read?.ok) throw new Error(`${source} were not read`);
  return read.value;
}

/** Leaves out of a list what is so. */
export function drop<T>(list: T[], isOut: (one: T) => boolean): void {
  list.splice(0, list.length, ...list.filter((one) => !isOut(one)));
}

/** The first that is called so, or begins so. */
export function named<T extends { name: string }>(list: readonly T[], start: string): T {
  const found =
    list.find(({ name }) => name === start) ?? list.find((one) => one.name.startsWith(start));
  if (found === undefined) throw new Error(`there is no ${start}`);
  return found;
}

export function heldIn({ content }: Snapshot): ObjectFacts[] {
  return content.flatMap(({ read }) =>
    read.ok ? read.value.terminating.flatMap(({ examples }) => examples) : [],
  );
}

export function deployment(
  namespace: string,
  name: string,
  container: JsonObject = { name },
  metadata: JsonObject = {},
): WorkloadFacts {
  return workloadFacts(
    'apps/v1',
    'Deployment',
  )({
    metadata: { namespace, name, uid: name, ...metadata },
    spec: {
      replicas: 1,
      template: { spec: { serviceAccountName: name, containers: [container] } },
    },
    status: { replicas: 1, readyReplicas: 1 },
  });
}

export const rule = (group: string, resources: string[], ...verbs: string[]) => ({
  ...{ apiGroups: [group], resources, verbs },
});

export const role = (
  name: string,
  rules: JsonObject[],
  labels = {},
  namespace?: string,
): RoleFacts => roleFacts({ metadata: { name, labels, ...(namespace && { namespace }) }, rules });

/** Of a ClusterRole; in a namespace, of a Role where it says so. */
export const binding = (
  name: string,
  subjects: JsonObject[],
  metadata = {},
  kind = 'ClusterRole',
) => bindingFacts({ metadata: { name, ...metadata }, roleRef: { kind, name }, subjects });

export const account = (namespace: string, name: string): JsonObject => ({
  ...{ kind: 'ServiceAccount', namespace, name },
});
