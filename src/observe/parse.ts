import {
  arrayAt,
  at,
  isObject,
  type Json,
  type JsonObject,
  numberAt,
  recordAt,
  stringAt,
  stringsAt,
} from '../base/json.ts';
import { shorten } from '../base/text.ts';
import type {
  ApiServiceFacts,
  AttachmentFacts,
  BindingFacts,
  ClusterServiceVersionFacts,
  Condition,
  DefinitionDetail,
  DefinitionFacts,
  EventFacts,
  FinalizerWriter,
  LabelRequirement,
  LeaseFacts,
  MatchRule,
  NamespaceFacts,
  NodeFacts,
  ObjectDetail,
  ObjectFacts,
  OwnerReference,
  PodFacts,
  PolicyBindingFacts,
  PolicyFacts,
  ResourceType,
  RoleFacts,
  ServiceFacts,
  ServiceRef,
  TemplateFacts,
  WebhookFacts,
  WorkloadFacts,
} from '../model/snapshot.ts';

/** JSON of the API server to plain facts. Nothing here throws: what is not as expected is left out. */

export function namespaceFacts(object: JsonObject): NamespaceFacts {
  return {
    name: nameOf(object),
    uid: stringAt(object, 'metadata', 'uid') ?? '',
    resourceVersion: stringAt(object, 'metadata', 'resourceVersion') ?? '',
    phase: stringAt(object, 'status', 'phase'),
    creationTimestamp: stringAt(object, 'metadata', 'creationTimestamp'),
    deletionTimestamp: stringAt(object, 'metadata', 'deletionTimestamp'),
    labels: recordAt(object, 'metadata', 'labels'),
    finalizers: stringsAt(object, 'metadata', 'finalizers'),
    writers: finalizerWriters(object),
    specFinalizers: stringsAt(object, 'spec', 'finalizers'),
    conditions: conditionsOf(object),
    statusWrittenAt: statusWriters(object).findLast(
      ({ manager }) => manager === 'kube-controller-manager',
    )?.time,
  };
}

/** `object` may be the full object or only its metadata; a list leaves out apiVersion and kind. */
export function objectFacts(object: JsonObject, type: ResourceType): ObjectFacts {
  return {
    apiVersion: type.group === '' ? type.version : `${type.group}/${type.version}`,
    kind: type.kind,
    namespace: namespaceOf(object),
    name: nameOf(object),
    uid: stringAt(object, 'metadata', 'uid') ?? '',
    resourceVersion: stringAt(object, 'metadata', 'resourceVersion') ?? '',
    creationTimestamp: stringAt(object, 'metadata', 'creationTimestamp'),
    deletionTimestamp: stringAt(object, 'metadata', 'deletionTimestamp'),
    generation: numberAt(object, 'metadata', 'generation'),
    finalizers: stringsAt(object, 'metadata', 'finalizers'),
    labels: recordAt(object, 'metadata', 'labels'),
    annotations: tellingAnnotations(object),
    ownerReferences: ownerReferences(object),
    writers: finalizerWriters(object),
    statusWriters: statusWriters(object),
  };
}

export function podFacts(object: JsonObject, type: ResourceType): PodFacts {
  const containers = arrayAt(object, 'status', 'containerStatuses');
  const conditions = conditionsOf(object);
  const waiting = containers.flatMap((container) => [
    ...said('waiting', at(container, 'state', 'waiting')),
    ...said('ended before', at(container, 'lastState', 'terminated')),
  ]);
  const unscheduled = conditions.find(
    (condition) => condition.type === 'PodScheduled' && condition.status === 'False',
  );
  return {
    ...objectFacts(object, type),
    ...templateFacts(object, namespaceOf(object)),
    phase: stringAt(object, 'status', 'phase'),
    ready: conditions.some(({ type: name, status }) => name === 'Ready' && status === 'True'),
    nodeName: stringAt(object, 'spec', 'nodeName'),
    deletionGracePeriodSeconds: numberAt(object, 'metadata', 'deletionGracePeriodSeconds'),
    claims: arrayAt(object, 'spec', 'volumes').flatMap((volume) => claimOf(object, volume) ?? []),
    troubles: [
      ...(unscheduled === undefined ? [] : [`${unscheduled.reason}: ${unscheduled.message}`]),
      ...waiting,
    ],
  };
}

/** Of a container that waits, or of how it ended the last time. */
function said(state: string, detail: Json | undefined): string[] {
  if (!isObject(detail)) return [];
  const exitCode = numberAt(detail, 'exitCode');
  const words = [stringAt(detail, 'reason'), stringAt(detail, 'message')?.trim()].filter(Boolean);
  if (exitCode === 0 || words.length === 0) return [];
  const code = exitCode === undefined ? '' : `, exit code ${exitCode}`;
  return [`${state}: ${shorten(words.join(': '), 300)}${code}`];
}

/** Generic ephemeral volumes have claims too (component-helpers, storage/ephemeral.VolumeClaimName). */
function claimOf(pod: JsonObject, volume: Json): string | undefined {
  if (!isObject(at(volume, 'ephemeral'))) {
    return stringAt(volume, 'persistentVolumeClaim', 'claimName');
  }
  return `${nameOf(pod)}-${stringAt(volume, 'name')}`;
}

export function workloadFacts(kind: string): (object: JsonObject) => WorkloadFacts {
  return (object) => {
    const template =
      kind === 'CronJob'
        ? at(object, 'spec', 'jobTemplate', 'spec', 'template')
        : at(object, 'spec', 'template');
    const { wanted, ready } = replicasOf(object, kind);
    return {
      ...templateFacts(template, namespaceOf(object)),
      apiVersion: kind === 'Job' || kind === 'CronJob' ? 'batch/v1' : 'apps/v1',
      kind,
      namespace: namespaceOf(object),
      name: nameOf(object),
      uid: stringAt(object, 'metadata', 'uid') ?? '',
      deletionTimestamp: stringAt(object, 'metadata', 'deletionTimestamp'),
      wanted,
      ready,
      labels: recordAt(object, 'metadata', 'labels'),
      annotations: tellingAnnotations(object),
      conditions: conditionsOf(object),
      nodeSelector: recordAt(template, 'spec', 'nodeSelector'),
      owner: ownerReferences(object).find(({ controller }) => controller),
    };
  };
}

function replicasOf(object: JsonObject, kind: string): { wanted: number; ready: number } {
  const isSuspended = at(object, 'spec', 'suspend') === true;
  switch (kind) {
    case 'DaemonSet':
      return {
        wanted: numberAt(object, 'status', 'desiredNumberScheduled') ?? 0,
        ready: numberAt(object, 'status', 'numberReady') ?? 0,
      };
    case 'Job': {
      const isOver = conditionsOf(object).some(
        ({ type, status }) => (type === 'Complete' || type === 'Failed') && status === 'True',
      );
      return {
        wanted: isSuspended || isOver ? 0 : (numberAt(object, 'spec', 'parallelism') ?? 1),
        ready: numberAt(object, 'status', 'ready') ?? 0,
      };
    }
    case 'CronJob':
      return {
        wanted: isSuspended ? 0 : 1,
        // Between two runs it is as ready as it can be.
        ready: isSuspended ? 0 : 1,
      };
    default:
      return {
        wanted: numberAt(object, 'spec', 'replicas') ?? 1,
        ready: numberAt(object, 'status', 'readyReplicas') ?? 0,
      };
  }
}

/** `template` is a pod template, or a pod. */
function templateFacts(template: Json | undefined, namespace: string): TemplateFacts {
  const containers = arrayAt(template, 'spec', 'containers');
  const watches = containers.flatMap((container) => watchesOf(container, template, namespace));
  return {
    account: stringAt(template, 'spec', 'serviceAccountName') ?? 'default',
    podLabels: recordAt(template, 'metadata', 'labels'),
    programs: [
      ...new Set(
        containers.flatMap((container) => {
          const [command = '', ...more] = stringsAt(container, 'command');
          const image = baseName(stringAt(container, 'image') ?? '').replace(/[:@].*$/, '');
          const [word = ''] = [...more, ...stringsAt(container, 'args')];
          const program = baseName(command) || image;
          return [
            stringAt(container, 'name') ?? '',
            baseName(command),
            image,
            // Programs of many commands write as `program-command`.
            ...(/^[a-z][a-z-]*$/.test(word) ? [`${program}-${word}`] : []),
          ];
        }),
      ),
    ].filter((name) => name !== ''),
    watches: watches.length === 0 || watches.includes('*') ? undefined : [...new Set(watches)],
  };
}

const WATCH_VARIABLE = /^(?:WATCH(?:ED)?_NAMESPACES?|NAMESPACES?_TO_WATCH|WATCH_NS)$/;
const WATCH_ARGUMENT = /^--?(?:watch(?:ed)?-)?namespaces?(?:=(.*))?$/;

/** Conventions of operator-sdk, controller-runtime projects and client-go's own flags. */
function watchesOf(container: Json, template: Json | undefined, own: string): string[] {
  const variables = new Map(
    arrayAt(container, 'env').map((entry) => [
      stringAt(entry, 'name') ?? '',
      variableOf(entry, template, own),
    ]),
  );
  const found = [...variables].flatMap(([name, value]) =>
    WATCH_VARIABLE.test(name) ? (value ?? '*') : [],
  );
  const words = [...stringsAt(container, 'command'), ...stringsAt(container, 'args')];
  words.forEach((word, index) => {
    const match = WATCH_ARGUMENT.exec(word);
    if (match !== null) found.push(match[1] ?? words[index + 1] ?? '*');
  });
  return found
    .map((value) => value.replace(/\$\(([^)]*)\)/g, (_, name) => variables.get(name) ?? '*'))
    .flatMap((value) => (value === '' ? ['*'] : value.split(',')))
    .map((name) => name.trim())
    .filter((name) => name !== '');
}

/** Undefined where it comes from somewhere that cannot be seen here. */
function variableOf(entry: Json, template: Json | undefined, own: string): string | undefined {
  const field = stringAt(entry, 'valueFrom', 'fieldRef', 'fieldPath');
  if (field === 'metadata.namespace') return own;
  const annotation = /^metadata\.annotations\['([^']+)'\]$/.exec(field ?? '')?.[1];
  if (annotation !== undefined) {
    return recordAt(template, 'metadata', 'annotations')[annotation] ?? '';
  }
  if (isObject(at(entry, 'valueFrom'))) return undefined;
  return stringAt(entry, 'value') ?? '';
}

function baseName(path: string): string {
  return path.slice(path.lastIndexOf('/') + 1);
}

export function definitionFacts(object: JsonObject): DefinitionFacts {
  return {
    name: nameOf(object),
    deletionTimestamp: stringAt(object, 'metadata', 'deletionTimestamp'),
    labels: recordAt(object, 'metadata', 'labels'),
    annotations: tellingAnnotations(object),
  };
}

export function definitionDetail(object: JsonObject): DefinitionDetail {
  return {
    ...definitionFacts(object),
    group: stringAt(object, 'spec', 'group') ?? '',
    kind: stringAt(object, 'spec', 'names', 'kind') ?? '',
    versions: arrayAt(object, 'spec', 'versions').map((version) => ({
      name: stringAt(version, 'name') ?? '',
      served: at(version, 'served') === true,
      storage: at(version, 'storage') === true,
    })),
    storedVersions: stringsAt(object, 'status', 'storedVersions'),
    conditions: conditionsOf(object),
    conversionService: serviceRef(at(object, 'spec', 'conversion', 'webhook', 'clientConfig')),
  };
}

const MAX_TEXTS = 10;
const MAX_MENTIONS = 50;
const MAX_REFERENCES = 20;
const MAX_DEPTH = 6;
const STATUS_TEXT = /^(?:last)?(?:error|failure)?(?:message|reason|error)$/i;

/** What a held object says beyond its metadata. */
export function objectDetail(object: JsonObject): ObjectDetail {
  const detail: ObjectDetail = {
    conditions: arrayAt(object, 'status', 'conditions').flatMap((entry) =>
      conditionOf(entry).map((condition) => ({
        ...condition,
        observedGeneration: numberAt(entry, 'observedGeneration'),
      })),
    ),
    observedGeneration: numberAt(object, 'status', 'observedGeneration'),
    texts: [],
    suspended: ['suspend', 'suspended', 'paused', 'pause']
      .filter((field) => at(object, 'spec', field) === true)
      .map((field) => `spec.${field}`)[0],
    references: [],
    mentions: [],
  };
  const policy = stringAt(object, 'spec', 'deletionPolicy');
  if (policy !== undefined) detail.deletionPolicy = policy;
  walk(at(object, 'spec'), 'spec', 0, (field, key, value) => {
    reference(detail, field, key, value);
    if (typeof value === 'string' && /name|secret|config|ref/i.test(key)) mention(detail, value);
  });
  walk(at(object, 'status'), 'status', 0, (field, key, value) => {
    reference(detail, field, key, value);
    const isText = typeof value === 'string' && STATUS_TEXT.test(key) && !/conditions/.test(field);
    if (isText && value !== '' && detail.texts.length < MAX_TEXTS) detail.texts.push(value);
  });
  return detail;
}

function mention({ mentions }: ObjectDetail, value: string): void {
  const isName = /^[a-z0-9][-a-z0-9.]{0,252}$/.test(value);
  if (isName && mentions.length < MAX_MENTIONS && !mentions.includes(value)) mentions.push(value);
}

/**
 * The conventions for naming another object: an ObjectReference under a key that ends in "Ref"
 * (Kubernetes API conventions, "Object references"), `bound…Name` of the snapshot API, `volumeName` of
 * a claim. `secretRef`, `secretKeyRef`, `secretName` and their like say the kind by their own name.
 */
function reference({ references }: ObjectDetail, field: string, key: string, value: Json): void {
  if (references.length >= MAX_REFERENCES) return;
  const bound = /^bound([A-Z]\w*)Name$/.exec(key)?.[1];
  if (typeof value === 'string' && value !== '') {
    const kind =
      bound ??
      (field === 'spec.volumeName' ? 'PersistentVolume' : undefined) ??
      (/(?:Name|Ref)$/.test(key) ? kindIn(key) : undefined);
    if (kind === undefined) return;
    references.push({ group: undefined, kind, namespace: undefined, name: value, field });
    return;
  }
  if (!/(?:Ref|Refs|Reference|References)(?:\[\])?$/.test(field)) return;
  const kind = stringAt(value, 'kind') ?? kindIn(field.slice(field.lastIndexOf('.') + 1));
  const name = stringAt(value, 'name');
  if (kind === undefined || name === undefined) return;
  const apiVersion = stringAt(value, 'apiVersion');
  const group = apiVersion === undefined ? stringAt(value, 'apiGroup') : groupOf(apiVersion);
  references.push({ group, kind, namespace: stringAt(value, 'namespace'), name, field });
}

function kindIn(key: string): string | undefined {
  if (/secret/i.test(key)) return 'Secret';
  if (/configMap/i.test(key)) return 'ConfigMap';
  return /serviceAccount/i.test(key) ? 'ServiceAccount' : undefined;
}

function walk(
  value: Json | undefined,
  field: string,
  depth: number,
  visit: (field: string, key: string, value: Json) => void,
): void {
  if (depth > MAX_DEPTH) return;
  if (Array.isArray(value)) {
    for (const item of value.slice(0, 100)) {
      visit(`${field}[]`, '', item);
      walk(item, `${field}[]`, depth + 1, visit);
    }
    return;
  }
  if (!isObject(value)) return;
  for (const [key, item] of Object.entries(value).slice(0, 200)) {
    if (item === undefined) continue;
    visit(`${field}.${key}`, key, item);
    walk(item, `${field}.${key}`, depth + 1, visit);
  }
}

function groupOf(apiVersion: string): string {
  return apiVersion.includes('/') ? (apiVersion.split('/')[0] ?? '') : '';
}

/** A controller watches its type and changes it, the namespace controller deletes all; others tell nothing. */
const VERBS: readonly string[] = ['watch', 'list', 'update', 'patch', 'deletecollection', '*'];

export function roleFacts(role: JsonObject): RoleFacts {
  return {
    name: nameOf(role),
    namespace: stringAt(role, 'metadata', 'namespace'),
    labels: recordAt(role, 'metadata', 'labels'),
    annotations: tellingAnnotations(role),
    rules: arrayAt(role, 'rules')
      .map((rule) => ({
        apiGroups: stringsAt(rule, 'apiGroups'),
        resources: stringsAt(rule, 'resources'),
        resourceNames: stringsAt(rule, 'resourceNames'),
        verbs: stringsAt(rule, 'verbs').filter((verb) => VERBS.includes(verb)),
      }))
      .filter(({ verbs, resources }) => verbs.length > 0 && resources.length > 0),
  };
}

export function bindingFacts(binding: JsonObject): BindingFacts {
  return {
    name: nameOf(binding),
    namespace: stringAt(binding, 'metadata', 'namespace'),
    role: {
      kind: stringAt(binding, 'roleRef', 'kind') ?? '',
      name: stringAt(binding, 'roleRef', 'name') ?? '',
    },
    subjects: arrayAt(binding, 'subjects').map((subject) => ({
      kind: stringAt(subject, 'kind') ?? '',
      namespace: stringAt(subject, 'namespace'),
      name: stringAt(subject, 'name') ?? '',
    })),
  };
}

export function webhookFacts(
  kind: WebhookFacts['configuration']['kind'],
): (object: JsonObject) => WebhookFacts[] {
  return (object) => {
    const uid = stringAt(object, 'metadata', 'uid') ?? '';
    const configuration = { kind, name: nameOf(object), uid };
    return arrayAt(object, 'webhooks').map((webhook, index) => ({
      configuration,
      name: stringAt(webhook, 'name') ?? '',
      index,
      failurePolicy: stringAt(webhook, 'failurePolicy') ?? 'Fail',
      matchPolicy: stringAt(webhook, 'matchPolicy') ?? 'Equivalent',
      service: serviceRef(at(webhook, 'clientConfig')),
      url: stringAt(webhook, 'clientConfig', 'url'),
      rules: arrayAt(webhook, 'rules').map(matchRule),
      namespaceSelector: selectorOf(at(webhook, 'namespaceSelector')),
      objectSelector: selectorOf(at(webhook, 'objectSelector')),
      hasMatchConditions: arrayAt(webhook, 'matchConditions').length > 0,
      dependsOnUser: looksAtUser(at(webhook, 'matchConditions')),
    }));
  };
}

function matchRule(rule: Json): MatchRule {
  return {
    operations: stringsAt(rule, 'operations'),
    apiGroups: stringsAt(rule, 'apiGroups'),
    apiVersions: stringsAt(rule, 'apiVersions'),
    resources: stringsAt(rule, 'resources'),
    resourceNames: stringsAt(rule, 'resourceNames'),
    scope: stringAt(rule, 'scope') ?? '*',
  };
}

export function policyFacts(kind: PolicyFacts['kind']): (object: JsonObject) => PolicyFacts {
  return (object) => ({
    kind,
    name: nameOf(object),
    failurePolicy: stringAt(object, 'spec', 'failurePolicy') ?? 'Fail',
    rules: arrayAt(object, 'spec', 'matchConstraints', 'resourceRules').map(matchRule),
    namespaceSelector: selectorOf(at(object, 'spec', 'matchConstraints', 'namespaceSelector')),
    objectSelector: selectorOf(at(object, 'spec', 'matchConstraints', 'objectSelector')),
    hasMatchConditions: arrayAt(object, 'spec', 'matchConditions').length > 0,
    dependsOnUser: looksAtUser(at(object, 'spec')),
  });
}

/** CEL variables of admission: KEP-3488. */
function looksAtUser(expressions: Json | undefined): boolean {
  return /\brequest\.userInfo\b|\bauthorizer\b/.test(JSON.stringify(expressions ?? null));
}

export function policyBindingFacts(object: JsonObject): PolicyBindingFacts {
  const params = at(object, 'spec', 'paramRef');
  return {
    name: nameOf(object),
    policy: stringAt(object, 'spec', 'policyName') ?? '',
    actions: stringsAt(object, 'spec', 'validationActions'),
    namespaceSelector: selectorOf(at(object, 'spec', 'matchResources', 'namespaceSelector')),
    paramRef: isObject(params)
      ? { name: stringAt(params, 'name'), namespace: stringAt(params, 'namespace') }
      : undefined,
  };
}

export function serviceFacts(object: JsonObject): ServiceFacts {
  return {
    namespace: namespaceOf(object),
    name: nameOf(object),
    selector: recordAt(object, 'spec', 'selector'),
  };
}

/** core/v1, which also shows what was written through events.k8s.io/v1. */
export function eventFacts(object: JsonObject): EventFacts {
  const about = at(object, 'involvedObject');
  return {
    type: stringAt(object, 'type') ?? '',
    reason: stringAt(object, 'reason') ?? '',
    message: stringAt(object, 'message') ?? '',
    regarding: {
      kind: stringAt(about, 'kind') ?? '',
      namespace: stringAt(about, 'namespace') ?? '',
      name: stringAt(about, 'name') ?? '',
      uid: stringAt(about, 'uid') ?? '',
    },
    component:
      stringAt(object, 'reportingComponent') || stringAt(object, 'source', 'component') || '',
    instance: stringAt(object, 'reportingInstance') || stringAt(object, 'source', 'host') || '',
    at:
      stringAt(object, 'series', 'lastObservedTime') ??
      stringAt(object, 'lastTimestamp') ??
      stringAt(object, 'eventTime') ??
      stringAt(object, 'metadata', 'creationTimestamp'),
  };
}

export function leaseFacts(object: JsonObject): LeaseFacts {
  return {
    namespace: namespaceOf(object),
    name: nameOf(object),
    holder: stringAt(object, 'spec', 'holderIdentity'),
    renewTime: stringAt(object, 'spec', 'renewTime'),
    durationSeconds: numberAt(object, 'spec', 'leaseDurationSeconds'),
  };
}

export function clusterServiceVersionFacts(object: JsonObject): ClusterServiceVersionFacts {
  return {
    namespace: namespaceOf(object),
    name: nameOf(object),
    owned: arrayAt(object, 'spec', 'customresourcedefinitions', 'owned').flatMap(
      (entry) => stringAt(entry, 'name') ?? [],
    ),
    deployments: arrayAt(object, 'spec', 'install', 'spec', 'deployments').flatMap(
      (entry) => stringAt(entry, 'name') ?? [],
    ),
  };
}

export function attachmentFacts(object: JsonObject): AttachmentFacts {
  return {
    name: nameOf(object),
    attacher: stringAt(object, 'spec', 'attacher') ?? '',
    volume: stringAt(object, 'spec', 'source', 'persistentVolumeName') ?? '',
    node: stringAt(object, 'spec', 'nodeName') ?? '',
    attached: at(object, 'status', 'attached') === true,
    error:
      stringAt(object, 'status', 'detachError', 'message') ??
      stringAt(object, 'status', 'attachError', 'message'),
  };
}

export function nodeFacts(object: JsonObject): NodeFacts {
  const ready = conditionsOf(object).find((condition) => condition.type === 'Ready');
  return {
    name: nameOf(object),
    ready: ready?.status,
    readyReason: ready === undefined ? undefined : `${ready.reason}: ${ready.message}`,
    readySince: ready?.lastTransitionTime,
    taints: arrayAt(object, 'spec', 'taints').flatMap((taint) => stringAt(taint, 'key') ?? []),
  };
}

export function apiServiceFacts(object: JsonObject): ApiServiceFacts {
  const service = serviceRef(at(object, 'spec'));
  const available = conditionsOf(object).find((condition) => condition.type === 'Available');
  const since = available?.lastTransitionTime;
  return {
    name: nameOf(object),
    group: stringAt(object, 'spec', 'group') ?? '',
    version: stringAt(object, 'spec', 'version') ?? '',
    service: service && { ...service, port: numberAt(object, 'spec', 'service', 'port') },
    available: available && {
      status: available.status,
      reason: available.reason,
      message: available.message,
      ...(since === undefined ? {} : { since }),
    },
  };
}

export function conditionsOf(object: JsonObject): Condition[] {
  return arrayAt(object, 'status', 'conditions').flatMap(conditionOf);
}

function conditionOf(entry: Json): Condition[] {
  const type = stringAt(entry, 'type');
  if (type === undefined) return [];
  const lastTransitionTime = stringAt(entry, 'lastTransitionTime');
  return [
    {
      type,
      status: stringAt(entry, 'status') ?? '',
      reason: stringAt(entry, 'reason') ?? '',
      message: stringAt(entry, 'message') ?? '',
      ...(lastTransitionTime === undefined ? {} : { lastTransitionTime }),
    },
  ];
}

/**
 * Who put each finalizer there: the managedFields entry whose set holds `v:"<finalizer>"` under
 * f:metadata, f:finalizers. Several managers may own the same entry; the last writer is named.
 */
export function finalizerWriters(object: JsonObject): FinalizerWriter[] {
  const finalizers = stringsAt(object, 'metadata', 'finalizers');
  if (finalizers.length === 0) return [];
  const entries = managedFields(object).map((entry) => ({
    entry,
    set: at(entry, 'fieldsV1', 'f:metadata', 'f:finalizers'),
  }));
  return [...new Set(finalizers)].flatMap((finalizer) => {
    const owner = entries.findLast(
      ({ set }) => at(set, `v:${JSON.stringify(finalizer)}`) !== undefined,
    );
    if (owner === undefined) return [];
    return {
      finalizer,
      manager: stringAt(owner.entry, 'manager') ?? '',
      operation: stringAt(owner.entry, 'operation') ?? '',
      time: stringAt(owner.entry, 'time'),
    };
  });
}

function statusWriters(object: JsonObject): ObjectFacts['statusWriters'] {
  return managedFields(object)
    .filter(
      (entry) =>
        stringAt(entry, 'subresource') === 'status' || isObject(at(entry, 'fieldsV1', 'f:status')),
    )
    .map((entry) => ({ manager: stringAt(entry, 'manager') ?? '', time: stringAt(entry, 'time') }));
}

/** Oldest first. */
function managedFields(object: JsonObject): Json[] {
  const timeOf = (entry: Json): string => stringAt(entry, 'time') ?? '';
  return arrayAt(object, 'metadata', 'managedFields').toSorted((a, b) =>
    timeOf(a) < timeOf(b) ? -1 : timeOf(a) > timeOf(b) ? 1 : 0,
  );
}

const TELLING = /^meta\.helm\.sh\/|coreos\.com\/|^olm\.|paus|reconcil|suspend|ignore/i;
const MAX_ANNOTATION_CHARS = 200;

function tellingAnnotations(object: JsonObject): Record<string, string> {
  return Object.fromEntries(
    Object.entries(recordAt(object, 'metadata', 'annotations')).filter(
      ([key, value]) => TELLING.test(key) && value.length <= MAX_ANNOTATION_CHARS,
    ),
  );
}

function ownerReferences(object: JsonObject): OwnerReference[] {
  return arrayAt(object, 'metadata', 'ownerReferences').map((entry) => ({
    apiVersion: stringAt(entry, 'apiVersion') ?? '',
    kind: stringAt(entry, 'kind') ?? '',
    name: stringAt(entry, 'name') ?? '',
    uid: stringAt(entry, 'uid') ?? '',
    controller: at(entry, 'controller') === true,
    blockOwnerDeletion: at(entry, 'blockOwnerDeletion') === true,
  }));
}

function serviceRef(clientConfig: Json | undefined): ServiceRef | undefined {
  const service = at(clientConfig, 'service');
  if (!isObject(service)) return undefined;
  return {
    namespace: stringAt(service, 'namespace') ?? '',
    name: stringAt(service, 'name') ?? '',
  };
}

/** A missing or empty selector matches everything (apimachinery, metav1.LabelSelectorAsSelector). */
function selectorOf(selector: Json | undefined): LabelRequirement[] {
  const labels = Object.entries(recordAt(selector, 'matchLabels')).map(([key, value]) => ({
    key,
    operator: 'In',
    values: [value],
  }));
  const expressions = arrayAt(selector, 'matchExpressions').map((expression) => ({
    key: stringAt(expression, 'key') ?? '',
    operator: stringAt(expression, 'operator') ?? '',
    values: stringsAt(expression, 'values'),
  }));
  return [...labels, ...expressions];
}

function nameOf(object: JsonObject): string {
  return stringAt(object, 'metadata', 'name') ?? '';
}

function namespaceOf(object: JsonObject): string {
  return stringAt(object, 'metadata', 'namespace') ?? '';
}
