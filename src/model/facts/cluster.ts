import { arrayAt, type JsonObject, stringAt, stringsAt } from '../../base/json.ts';
import { conditionsOf, INSTALLED, lastWrite, managersOf } from './metadata.ts';
import {
  each,
  fieldAt,
  ifAny,
  message,
  NAME,
  number,
  PLACED,
  record,
  shape,
  text,
  textIfAny,
  textOfEach,
  texts,
} from './shape.ts';

export const serviceFacts = shape({ ...PLACED, selector: record('spec.selector') });

const regarding = shape({
  ...{ kind: text('kind'), namespace: text('namespace'), name: text('name'), uid: text('uid') },
});

/** An Event of core/v1, which also contains Events that were written through events.k8s.io/v1. */
export type EventFacts = ReturnType<typeof eventFacts>;
export const eventFacts = shape({
  type: text('type'),
  reason: message('reason'),
  message: message('message'),
  regarding: fieldAt('involvedObject', regarding),
  /** The component that reported the Event, and its pod or process. */
  component: (event) =>
    stringAt(event, 'reportingComponent') || stringAt(event, 'source', 'component') || '',
  instance: (event) =>
    stringAt(event, 'reportingInstance') || stringAt(event, 'source', 'host') || '',
  at: (event) =>
    stringAt(event, 'series', 'lastObservedTime') ??
    stringAt(event, 'lastTimestamp') ??
    stringAt(event, 'eventTime') ??
    stringAt(event, 'metadata', 'creationTimestamp'),
});

export type LeaseFacts = ReturnType<typeof leaseFacts>;
export const leaseFacts = shape({
  ...PLACED,
  holder: textIfAny('spec.holderIdentity'),
  /** Time of the last renewal, by the server's clock (managedFields) where it has one. */
  renewTime: (lease): string | undefined =>
    stringAt(lastWrite(lease, 'f:spec', 'f:renewTime'), 'time') ??
    stringAt(lease, 'spec', 'renewTime'),
  durationSeconds: number('spec.leaseDurationSeconds'),
  writers: managersOf,
});

/** The CRDs that an operator of OLM owns, and the Deployments that it runs. */
export const clusterServiceVersionFacts = shape({
  ...PLACED,
  owned: textOfEach('spec.customresourcedefinitions.owned', 'name'),
  deployments: textOfEach('spec.install.spec.deployments', 'name'),
});

const node = shape({
  ...NAME,
  taints: textOfEach('spec.taints', 'key'),
  deletionTimestamp: textIfAny('metadata.deletionTimestamp'),
});
export type NodeFacts = ReturnType<typeof nodeFacts>;
export function nodeFacts(object: JsonObject) {
  const { status, reason, message, lastTransitionTime } =
    conditionsOf(object).find(({ type }) => type === 'Ready') ?? {};
  const readyReason = reason === undefined ? undefined : `${reason}: ${message}`;
  return { ...node(object), ready: status, readyReason, readySince: lastTransitionTime };
}

/** Verbs that identify a controller: it watches its type and changes it, by its own account or by impersonation. */
const VERBS = /^(?:watch|list|update|patch|deletecollection|impersonate|bind|escalate|\*)$/;

/** Resources of a rule that include tokens of ServiceAccounts; `*` includes all subresources. */
const TOKENS = /^(?:serviceaccounts\/(?:token|\*)|\*(?:\/token)?)$/;
/** Whose creation is kept: the token of an account, and the pods in which a clean-up may run. */
const CREATED = new RegExp(`${TOKENS.source}|^(?:pods|jobs)$`);

export type RuleFacts = ReturnType<typeof ruleFacts>;
const ruleFacts = shape({
  apiGroups: texts('apiGroups'),
  resources: texts('resources'),
  resourceNames: texts('resourceNames'),
  verbs: (rule) => {
    const isCreationKept = stringsAt(rule, 'resources').some((name) => CREATED.test(name));
    return stringsAt(rule, 'verbs').filter(
      (verb) => VERBS.test(verb) || (isCreationKept && verb === 'create'),
    );
  },
});

const RBAC_OBJECT = { ...NAME, namespace: textIfAny('metadata.namespace') };

export type RoleFacts = ReturnType<typeof roleFacts>;
export const roleFacts = shape({
  ...RBAC_OBJECT,
  ...INSTALLED,
  rules: (role) =>
    arrayAt(role, 'rules')
      .map((rule) => ruleFacts(rule))
      .filter(({ verbs, resources }) => verbs.length > 0 && resources.length > 0),
});

export type BindingFacts = ReturnType<typeof bindingFacts>;
export const bindingFacts = shape({
  ...RBAC_OBJECT,
  role: fieldAt('roleRef', shape({ kind: text('kind'), name: text('name') })),
  subjects: each(
    'subjects',
    shape({ kind: text('kind'), namespace: textIfAny('namespace'), name: text('name') }),
  ),
});

export type ServiceRef = ReturnType<typeof serviceRef>;
export const serviceRef = shape({ namespace: text('namespace'), name: text('name') });

/** Returns the Service whose DNS name is the host of an address: https://NAME.NAMESPACE.svc:8443/path. */
export function serviceInUrl(url = ''): ServiceRef | undefined {
  const host = /^https:\/\/([^./:]{1,63})\.([^./:]{1,63})\.svc(?:\.cluster\.local)?\.?(?:[/:]|$)/i;
  const [, name, namespace] = host.exec(url) ?? [];
  return name && namespace ? { namespace, name } : undefined;
}

const DEFINITION = {
  ...NAME,
  deletionTimestamp: textIfAny('metadata.deletionTimestamp'),
  ...INSTALLED,
};
export const definitionFacts = shape(DEFINITION);

/** A CRD without its schemas. */
export type DefinitionDetail = ReturnType<typeof definitionDetail>;
export const definitionDetail = shape({
  ...DEFINITION,
  group: text('spec.group'),
  kind: text('spec.names.kind'),
  /** Versions in which objects may still be stored. */
  storedVersions: texts('status.storedVersions'),
  conditions: conditionsOf,
  conversionService: ifAny('spec.conversion.webhook.clientConfig.service', serviceRef),
});

export type ApiServiceFacts = ReturnType<typeof apiServiceFacts>;
export const apiServiceFacts = shape({
  ...NAME,
  group: text('spec.group'),
  version: text('spec.version'),
  /** Backend Service. Absent for built-in and CRD groups, which the API server serves itself. */
  service: ifAny('spec.service', serviceRef),
  /** The `Available` condition; undefined if it was never evaluated. */
  available: (object) =>
    conditionsOf(object).flatMap(({ type, lastTransitionTime: since, ...state }) =>
      type === 'Available' ? { ...state, ...(since === undefined ? {} : { since }) } : [],
    )[0],
});
