import { arrayAt, type JsonObject, stringAt, stringsAt } from '../../base/json.ts';
import { conditionsOf, INSTALLED, lastWrite, managersOf } from './metadata.ts';
import { at, NAME, PLACED, shape } from './shape.ts';

export const serviceFacts = shape({ ...PLACED, selector: at.record('spec.selector') });

/** An Event of core/v1, which also contains Events that were written through events.k8s.io/v1. */
export type EventFacts = ReturnType<typeof eventFacts>;
export const eventFacts = shape({
  type: at.text('type'),
  reason: at.message('reason'),
  message: at.message('message'),
  regarding: at.field('involvedObject', shape({ uid: at.text('uid') })),
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
  holder: at.textIfAny('spec.holderIdentity'),
  /** Time of the last renewal, by the server's clock (managedFields) where it has one. */
  renewTime: (lease) =>
    lastWrite(lease, 'f:spec', 'f:renewTime')?.time ?? stringAt(lease, 'spec', 'renewTime'),
  durationSeconds: at.number('spec.leaseDurationSeconds'),
  writers: managersOf,
});

const deletionTimestamp = at.textIfAny('metadata.deletionTimestamp');
const node = shape({ ...NAME, deletionTimestamp });
export type NodeFacts = ReturnType<typeof nodeFacts>;
export function nodeFacts(object: JsonObject) {
  const ready = conditionsOf(object).find(({ type }) => type === 'Ready');
  const readyReason = ready && `${ready.reason}: ${ready.message}`;
  const readySince = ready?.lastTransitionTime;
  return { ...node(object), ready: ready?.status, readyReason, readySince };
}

/** Verbs that identify a controller: it watches its type and changes it, by its own account or by impersonation. */
const VERBS = /^(?:watch|list|update|patch|deletecollection|impersonate|bind|escalate|\*)$/;
/** `create` is kept beside these, as of tools of people, and alone: tokens of accounts (`*` includes subresources), and pods in which a clean-up may run. */
const CREATED = /^(?:serviceaccounts\/(?:token|\*)|\*(?:\/token)?|pods|jobs)$/;

export type RuleFacts = ReturnType<typeof ruleFacts>;
const ruleFacts = shape({
  apiGroups: at.texts('apiGroups'),
  resources: at.texts('resources'),
  resourceNames: at.texts('resourceNames'),
  verbs: (rule) => {
    const verbs = stringsAt(rule, 'verbs');
    const isCreator = stringsAt(rule, 'resources').some((name) => CREATED.test(name));
    const isCreationKept = isCreator || verbs.some((verb) => VERBS.test(verb));
    return verbs.filter((verb) => VERBS.test(verb) || (isCreationKept && verb === 'create'));
  },
});

const RBAC_OBJECT = { ...NAME, namespace: at.textIfAny('metadata.namespace') };

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
const kindAndName = { kind: at.text('kind'), name: at.text('name') };
export const bindingFacts = shape({
  ...RBAC_OBJECT,
  role: at.field('roleRef', shape(kindAndName)),
  subjects: at.each('subjects', shape({ ...kindAndName, namespace: at.textIfAny('namespace') })),
});

export type ServiceRef = ReturnType<typeof serviceRef>;
export const serviceRef = shape({ namespace: at.text('namespace'), name: at.text('name') });

/** Returns the Service whose DNS name is the host of an address: https://NAME.NAMESPACE.svc:8443/path. */
export function serviceInUrl(url = ''): ServiceRef | undefined {
  const host = /^https:\/\/([^./:]{1,63})\.([^./:]{1,63})\.svc(?:\.cluster\.local)?\.?(?:[/:]|$)/i;
  const [, name, namespace] = host.exec(url) ?? [];
  return name && namespace ? { namespace, name } : undefined;
}

const DEFINITION = { ...NAME, deletionTimestamp, ...INSTALLED };
export const definitionFacts = shape(DEFINITION);

/** A CRD without its schemas. */
export type DefinitionDetail = ReturnType<typeof definitionDetail>;
export const definitionDetail = shape({
  ...DEFINITION,
  group: at.text('spec.group'),
  kind: at.text('spec.names.kind'),
  /** Versions in which objects may still be stored. */
  storedVersions: at.texts('status.storedVersions'),
  conversionService: at.ifAny('spec.conversion.webhook.clientConfig.service', serviceRef),
});

export type ApiServiceFacts = ReturnType<typeof apiServiceFacts>;
export const apiServiceFacts = shape({
  ...NAME,
  group: at.text('spec.group'),
  version: at.text('spec.version'),
  /** Backend Service. Absent for built-in and CRD groups, which the API server serves itself. */
  service: at.ifAny('spec.service', serviceRef),
  /** The `Available` condition; undefined if it was never evaluated. */
  available: (object) => {
    const found = conditionsOf(object).find(({ type }) => type === 'Available');
    if (found === undefined) return undefined;
    const { status, reason, message, lastTransitionTime: since } = found;
    return { status, reason, message, ...(since && { since }) };
  },
});
