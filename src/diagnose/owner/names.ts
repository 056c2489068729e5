import type { LeaseFacts } from '../../model/snapshot.ts';
import type { Actor } from '../actors.ts';
import { type CatalogueEntry, isExactly, isWorkloadOf } from '../catalogue.ts';

/**
 * What counts as the same program. It writes and reports under one name (a field manager, the component of an Event),
 * and runs under others: its workload's, its account's, those of its containers, commands and images. The kinds of
 * sameness, from the loosest to the strictest: a word of the type (`isCalledAfterType`), a product that is
 * well-known (`isOfProduct`), one of its names that tell (`goesBy`), also its own name or its pod (`speaksAs`), the pod
 * that is there now (`isHolder`).
 */

/** Names that frameworks give to any controller. */
const ANY_CONTROLLER = /^(?:manager|controller|controller-manager|operator|main|app|server)$/i;

/** Tools of people, and client libraries. */
const ANYBODY =
  /^(?:kubectl.*|helm|node|python.*|java|unknown|curl|Mozilla|OpenAPI-Generator|Go-http-client|kube-apiserver|kube-controller-manager|before-first-apply|terraform.*|pulumi.*|ansible.*|rancher|oc|k9s|lens.*|dashboard|client|okhttp|fabric8.*|axios.*|node-fetch|undici)$/i;

/** They apply what others have written, and look after objects of their own kinds only. */
export const GITOPS =
  /^(?:argocd.*|gitops.*|gotk-.*|flux.*|kustomize-controller|helm-controller|fleet.*)$/i;

/** Of kubelets and schedulers, which own no finalizers. */
export const OF_NODES = /^(?:kubelet|.*scheduler)$/;

/** Of kube-controller-manager, as its controllers report (kubernetes pkg/controller, NewRecorder). */
export const OF_KUBERNETES =
  /^(?:(?:replicaset|deployment|daemonset|statefulset|job|cronjob|replication|node|endpoint|endpoint-slice|taint-eviction|persistentvolume|attachdetach)-controller|horizontal-pod-autoscaler|controllermanager|kube-controller-manager)$/;

/** They write to the status of what is not theirs. */
export const OF_NOBODY =
  /^(?:kubelet|kubectl.*|kube-controller-manager|kube-scheduler|cloud-controller-manager)$/;

/** Whether a program's name says which one it is. */
export function isTelling(name: string): boolean {
  return name !== '' && !ANYBODY.test(name) && !isOfAnyController(name);
}

/** Whether the name is one that says only that a controller wrote. */
export function isOfAnyController(manager: string): boolean {
  return ANY_CONTROLLER.test(manager);
}

/** Without the hash of a revision (`provider-aws-s3-dc4dc9c3f5b1`) and the mark of Flux's toolkit (`gotk-…`). */
function programOf(name: string): string {
  return name.replace(/-(?=[a-f]*\d)[a-f0-9]{8,}$/, '').replace(/^gotk-/, '');
}

/** `PrometheusOperator` is what a program may call itself that is installed as `prometheus-operator`. */
export function isSameProgram(a: string, b: string): boolean {
  const [one, other] = [a, b].map((name) =>
    programOf(name)
      .toLowerCase()
      .replace(/[-_. ]/g, ''),
  );
  return one === other;
}

/** What a chart's own names have in front, where it is installed as a release. */
function releasesOf({ annotations, labels }: Actor): (string | undefined)[] {
  return [annotations['meta.helm.sh/release-name'], labels['app.kubernetes.io/instance']];
}

/** Of what a chart makes, the name of the release is no part of its own; what is left is the chart's name. */
export function namesOf(actor: Actor): string[] {
  const names = [...actor.programs, actor.account.name];
  const chart = actor.labels['app.kubernetes.io/name'];
  const bare = releasesOf(actor)
    .flatMap((release) =>
      names
        .filter((name) => name.startsWith(`${release}-`))
        .map((name) => name.slice(`${release}-`.length)),
    )
    .filter((name) => chart === undefined || chart === name);
  return [...names, ...bare].filter(isTelling).map(programOf);
}

export function goesBy(actor: Actor, name: string): boolean {
  return namesOf(actor).some((own) => isSameProgram(own, name));
}

/** Whether these are words of its: by the name that it writes and reports by, or that of its pod. */
export function speaksAs(actor: Actor, name: string, instance = ''): boolean {
  const isItsOwn =
    !isOfAnyController(name) &&
    [actor.name, actor.account.name].some((own) => isSameProgram(own, name));
  return isItsOwn || goesBy(actor, name) || ofInstance([actor], instance).length > 0;
}

/** Neither it nor its account is called so, only what it runs: that may be a framework (`kopf run handlers.py`). */
export function isOnlyByProgram({ name, account }: Actor, manager: string): boolean {
  const program = programOf(manager);
  return ![name, account.name].some(
    (own) => own.includes(program) || program.includes(own) || isSameProgram(own, manager),
  );
}

/**
 * Whose pod it is: controller-runtime reports `<controller>-<hostname>`, client-go the bare hostname, which is the
 * pod's name. Where the pod is gone, those whose pods are called so.
 */
export function ofInstance(actors: readonly Actor[], instance: string): Actor[] {
  if (instance === '') return [];
  const seen = actors.filter(({ pods }) =>
    pods.some(({ name }) => instance === name || instance.endsWith(`-${name}`)),
  );
  return seen.length > 0 ? seen : actors.filter((actor) => isPodNameOf(actor, instance));
}

/** `widget-operator-7c9f8d6b5-x2x4z` of a pod that is gone: the workload's name and generated parts. */
function isPodNameOf({ kind, name }: Actor, podName: string): boolean {
  if (kind === 'Pod') return podName === name;
  const rest = podName.startsWith(`${name}-`) ? podName.slice(name.length + 1) : '';
  return /^(?:[a-z0-9]{1,10}-)?[a-z0-9]{1,10}$/.test(rest);
}

/**
 * One of its pods holds the Lease: client-go adds an ID to the name, cert-manager words. Pods of a StatefulSet are
 * called as those before them: what was renewed last before a pod was made was another's.
 */
export function isHolder({ pods }: Actor, { holder = '', renewTime }: LeaseFacts): boolean {
  return pods.some(
    ({ name, creationTimestamp }) =>
      (holder === name || holder.startsWith(`${name}_`) || holder.startsWith(`${name}-`)) &&
      !(Date.parse(renewTime ?? '') < Date.parse(creationTimestamp ?? '')),
  );
}

export function isOfProduct(known: CatalogueEntry, { name, programs }: Actor): boolean {
  return isWorkloadOf(known, name) || programs.some((program) => isExactly(known, program));
}

/**
 * The name of a release in front of the product's is seen beside it, or the product is at home:
 * `console-cert-manager` may be a console for it.
 */
export function isProductItself(known: CatalogueEntry, actor: Actor): boolean {
  const { namespace, name, programs } = actor;
  return (
    programs.some((program) => isExactly(known, program)) ||
    known.workload.some(
      (one) =>
        isWorkloadOf({ workload: [one] }, name) &&
        (one.name.includes('*') ||
          namespace === one.namespace ||
          [one.name, ...releasesOf(actor).map((release) => `${release}-${one.name}`)].includes(
            name,
          )),
    )
  );
}
