import { matchesGlob } from '../../base/text.ts';
import { CATALOGUE, type CatalogueEntry } from '../../model/catalogue.ts';
import type { Actor } from '../actors.ts';
import { remember } from '../context.ts';

/** Decides which names belong to one program: it writes under one (a field manager) and runs under others (workload, account, container, image). */

/** Commands of frameworks, which run the controllers of anybody. */
export const FRAMEWORKS = /^(?:kopf|helm-operator|ansible-operator)$/;

/** Names that frameworks give to every controller, and Go to a program without one: `./cmd`, `grafana-operator/v5`. */
const FRAMEWORK_NAMES =
  /^(?:manager|controller|controller-manager|operator|agent|kopf|main|cmd|v\d+|app|server|provider)$/i;

/** Field managers of tools for people, of client libraries, of Kubernetes itself, and of classes (the Java Operator SDK). */
const GENERIC_FIELD_MANAGERS =
  /^(?:kubectl.*|helm|node|python.*|java|unknown|curl|Mozilla|OpenAPI-Generator|Go-http-client|kube-apiserver|kube-controller-manager|before-first-apply|(?:terraform|pulumi|ansible)(?!.*operator).*|rancher|oc|k9s|lens.*|dashboard|client|okhttp|fabric8.*|axios.*|node-fetch|undici|[a-z\d]+reconciler)$/i;

/** Tools for GitOps, packages, policies, backup, dashboards and CI, which may change everything and remove no finalizer of others. */
export const GENERAL_TOOLS =
  /^(?:argo-?cd.*|gitops.*|gotk-.*|flux.*|(?:source|kustomize|helm|notification|image-.*)-controller|fleet-.*|olm-operator|catalog-operator|kyverno.*|gatekeeper.*|kubewarden.*|opa|(?:.*-)?policy-(?:engine|controller|server|agent)|velero.*|node-agent|k8up.*|kasten.*|kanister.*|stash.*|(?:kubernetes-)?dashboard.*|headlamp.*|rancher.*|octant|lens|k9s|tiller|jenkins.*|gitlab-(?:runner|agent).*|(?:actions-|gha-|github-).*runner.*|buildkite.*|drone.*|concourse.*|teamcity.*|azure-pipelines.*|spinnaker.*|harness-delegate.*|octopus-.*|kluctl.*|stork|atlantis.*|portainer.*|cattle-.*|botkube.*|robusta.*|komodor.*|devtron.*|teleport.*|castai-.*|tekton-pipelines-controller|prometheus.*|.*lagoon-build-deploy)$/;

/** Namespaces that such a product's own installer names. Others, as `gitops` or `octopus-prod`, are of teams. */
const TOOL_NAMESPACES =
  /^(?:kasten-io|cattle-(?:fleet-(?:local-)?)?system|config-management-system|pepr-system)$/;

export function isGeneralTool({ name, namespace, programs }: Actor): boolean {
  return (
    TOOL_NAMESPACES.test(namespace) || [name, ...programs].some((own) => GENERAL_TOOLS.test(own))
  );
}

/** Kubelets and schedulers, which own no finalizers. */
export const NODE_COMPONENTS = /^(?:kubelet|.*scheduler)$/;

/** Names under which controllers of kube-controller-manager report (kubernetes pkg/controller, NewRecorder). */
const KUBERNETES_CONTROLLERS =
  /^(?:(?:replicaset|deployment|daemonset|statefulset|job|cronjob|replication|node|endpoint|endpoint-slice|taint-eviction|persistentvolume|attachdetach)-controller|horizontal-pod-autoscaler|controllermanager|kube-controller-manager)$/;

/** Field managers that are no controller's. Everyone else who still writes objects of a type may also remove a finalizer. */
export const HARMLESS_WRITERS =
  /^(?:kube-controller-manager|kube-apiserver|kubelet|kubectl(?:-.*)?|namespace-teardown-gate)$/;

/** Recognizes components of Kubernetes, which report about objects and write the status of objects they do not own. */
export function isKubernetesComponent(name: string): boolean {
  return [NODE_COMPONENTS, KUBERNETES_CONTROLLERS].some((names) => names.test(name));
}

/** Reports whether a name belongs to one program. A default name ends before the first slash (apiserver, managerOrUserAgent). */
export function identifiesProgram(name: string): boolean {
  return !name.includes('/') && !GENERIC_FIELD_MANAGERS.test(name) && !isFrameworkName(name);
}

/** Reports whether a framework gives this name to every controller. */
export function isFrameworkName(name: string): boolean {
  return FRAMEWORK_NAMES.test(name) || FRAMEWORKS.test(name);
}

/** Returns the name without a revision's hash (`provider-aws-s3-dc4dc9c3f5b1`) and the prefix of Flux's toolkit. */
function withoutHash(name: string): string {
  return name.replace(/-(?=[a-f]*\d)[a-f0-9]{8,}$/, '').replace(/^gotk-/, '');
}

/** Returns the letters of a name: `WidgetOperator` and `widget-operator` are one. */
function lettersOf(name: string): string {
  return withoutHash(name)
    .toLowerCase()
    .replace(/[-_. ]/g, '');
}

/** Reports whether two names have the same letters. A name without letters, such as an Event's missing component, is none. */
export function isSameName(a: string, b: string): boolean {
  const letters = lettersOf(a);
  return letters !== '' && letters === lettersOf(b);
}

/** Reports whether a longer name contains that of a program: `widget-operator-leader-election`. */
export function containsName(longer: string, name: string): boolean {
  const letters = lettersOf(name);
  return letters !== '' && lettersOf(longer).includes(letters);
}

/** Returns what is left of a longer name behind this one; nothing, if it does not begin with it. */
export function restOf(longer: string, name = ''): string[] {
  return longer.startsWith(`${name}-`) ? [longer.slice(name.length + 1)] : [];
}

/** Returns the names, and what is left of them behind the name of the Helm release, which charts put in front of their own. */
export function withoutRelease({ annotations, labels }: Actor, names: readonly string[]): string[] {
  const releases = [annotations['meta.helm.sh/release-name'], labels['app.kubernetes.io/instance']];
  return [...names, ...releases.flatMap((one) => names.flatMap((name) => restOf(name, one)))];
}

/** Returns every name that identifies the program of a workload. */
export const programNames = remember((actor: Actor): string[] => {
  const names = withoutRelease(actor, [...actor.programs, actor.account.name]);
  return [...new Set(names.filter(identifiesProgram).map(withoutHash))];
});

/** Reports whether one of the workload's names is this name. */
export function hasProgramName(actor: Actor, name: string): boolean {
  return programNames(actor).some((own) => isSameName(own, name));
}

/** Returns the workloads that run the program of this name; else those of which a name of several words begins or ends it, in any order (`crossplane-helm-provider`), and operators whose name it begins. */
export function workloadsOfProgram(actors: readonly Actor[], name: string): Actor[] {
  const named = actors.filter((actor) => hasProgramName(actor, name));
  if (named.length > 0) return named;
  const wordsOf = (one: string): string[] => one.toLowerCase().split(/[-_. ]/);
  const key = (words: readonly string[]): string => words.toSorted().join(' ');
  const all = wordsOf(name);
  return actors.filter((actor) =>
    programNames(actor).some((own) => {
      const words = wordsOf(own);
      const { length } = words;
      const ends = [all.slice(0, length), all.slice(-length)].map(key);
      return length < all.length
        ? length > 1 && ends.includes(key(words)) && !/^(?:\W?(?:cluster|operator))+$/.test(own)
        : own.startsWith(`${name}-`) && /-(?:controller|manager|operator)$/.test(own);
    }),
  );
}

/** Reports whether the reporter of an Event, or the writer of a status, is this workload. */
export function matchesReporter(actor: Actor, name: string, instance: string): boolean {
  return hasProgramName(actor, name) || workloadsOfPod([actor], instance, name).length > 0;
}

/** Returns the workloads of a pod. Reporters give its hostname, or `<component>-<hostname>` (client-go); of a pod that is gone the name tells. */
export function workloadsOfPod(actors: readonly Actor[], instance: string, component = '') {
  const hosts = [instance, ...restOf(instance, component)];
  const seen = actors.filter(({ pods }) => pods.some(({ name }) => hosts.includes(name)));
  return seen.length > 0
    ? seen
    : actors.filter((actor) => hosts.some((host) => isPodNameOf(actor, host)));
}

/** Recognizes `widget-operator-7c9f8d6b5-x2x4z`: the workload's name and generated parts. */
function isPodNameOf({ name }: Actor, podName: string): boolean {
  return restOf(podName, name).some((rest) => /^(?:[a-z0-9]{1,10}-)?[a-z0-9]{1,10}$/.test(rest));
}

/** Reports whether two domains are equal, or one is below the other: `crossplane.io`, `aws.crossplane.io`. */
export function isOfOneProject(one: string, other: string): boolean {
  return `.${one}`.endsWith(`.${other}`) || `.${other}`.endsWith(`.${one}`);
}

/** `eck.k8s.elastic.co` and `kibana.k8s.elastic.co` are of one company. */
export function isOfOneCompany(one: string, other: string): boolean {
  const [own, its] = [one, other].map((domain) => domain.split('.').slice(-2).join('.'));
  return own === its;
}

/** Returns the name of the product; undefined for a family of controllers ("an operator written with kopf"). */
export function productName({ owner }: CatalogueEntry): string | undefined {
  if (/^(?:an?|the) /.test(owner)) return undefined;
  const name = owner.replace(/;.*| \(.*/, '');
  return / .*(?:controller|manager|operator)\b/i.test(name) ? `the ${name}` : name;
}

/** Reports whether the workload has the name of the entry's owner, perhaps behind the name of a release. */
export function isWorkloadOf(entry: CatalogueEntry, name: string): boolean {
  return entry.workload.some((known) => isNamedAs(known.name, name));
}

function isNamedAs(known: string, name: string): boolean {
  // Every operator made with kubebuilder is called `…-controller-manager`.
  const isOwn = known.includes('-') && known !== 'controller-manager';
  return matchesGlob(known, name) || (isOwn && name.endsWith(`-${known}`));
}

/** Reports whether it is the name of the owner of a well-known finalizer, and not one that any program may have, or a pattern of many. */
export function isNameOfProduct(name: string): boolean {
  const isMeant = (known: string): boolean =>
    !known.startsWith('*') && !isFrameworkName(known) && isNamedAs(known, name);
  return CATALOGUE.some(({ workload }) => workload.some((known) => isMeant(known.name)));
}

/** Returns the products whose controller has this name. */
export function productsOf(name: string): CatalogueEntry[] {
  return CATALOGUE.filter((entry) => isExactWorkloadName(entry, name));
}

/** A name of one word identifies none. */
export function isExactWorkloadName({ workload }: CatalogueEntry, program: string): boolean {
  return program.includes('-') && workload.some(({ name }) => name === program);
}

export function domainOf(finalizer: string): string {
  return finalizer.split('/')[0] as string;
}
