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
import type {
  AttachmentFacts,
  CrdFacts,
  EventFacts,
  Grant,
  LabelRequirement,
  LeaseFacts,
  ObjectStatus,
  ServiceFacts,
  WebhookFacts,
  WorkloadFacts,
} from '../model/snapshot.ts';
import { conditionsOf } from './facts.ts';

const MAX_STATUS_TEXTS = 10;
const STATUS_TEXT_KEYS = ['message', 'reason', 'error', 'lastError', 'errorMessage'] as const;
/** A controller watches its type and changes it; other verbs say nothing about ownership. */
const VERBS: readonly string[] = ['watch', 'update', 'patch', '*'];

export function crdFacts(object: JsonObject): CrdFacts {
  return {
    name: stringAt(object, 'metadata', 'name') ?? '',
    group: stringAt(object, 'spec', 'group') ?? '',
    kind: stringAt(object, 'spec', 'names', 'kind') ?? '',
    deletionTimestamp: stringAt(object, 'metadata', 'deletionTimestamp'),
    conditions: conditionsOf(object),
    conversionService: serviceRef(at(object, 'spec', 'conversion', 'webhook', 'clientConfig')),
    labels: recordAt(object, 'metadata', 'labels'),
  };
}

export function objectStatus(object: JsonObject): ObjectStatus {
  const texts = STATUS_TEXT_KEYS.flatMap((key) => stringAt(object, 'status', key) ?? []);
  return {
    conditions: conditionsOf(object),
    texts: texts.filter((text) => text !== '').slice(0, MAX_STATUS_TEXTS),
    volumeName: stringAt(object, 'spec', 'volumeName'),
  };
}

export function workloadFacts(object: JsonObject, kind: WorkloadFacts['kind']): WorkloadFacts {
  const isDaemonSet = kind === 'DaemonSet';
  return {
    kind,
    namespace: stringAt(object, 'metadata', 'namespace') ?? '',
    name: stringAt(object, 'metadata', 'name') ?? '',
    uid: stringAt(object, 'metadata', 'uid') ?? '',
    deletionTimestamp: stringAt(object, 'metadata', 'deletionTimestamp'),
    wanted: isDaemonSet
      ? (numberAt(object, 'status', 'desiredNumberScheduled') ?? 0)
      : (numberAt(object, 'spec', 'replicas') ?? 1),
    ready: numberAt(object, 'status', isDaemonSet ? 'numberReady' : 'readyReplicas') ?? 0,
    serviceAccount: stringAt(object, 'spec', 'template', 'spec', 'serviceAccountName') ?? 'default',
    podLabels: recordAt(object, 'spec', 'template', 'metadata', 'labels'),
    containers: arrayAt(object, 'spec', 'template', 'spec', 'containers').flatMap(
      (container) => stringAt(container, 'name') ?? [],
    ),
    labels: recordAt(object, 'metadata', 'labels'),
    conditions: conditionsOf(object),
  };
}

/** The rules of a Role or ClusterRole that let someone watch or change objects. */
export interface GrantRule {
  apiGroups: string[];
  resources: string[];
  verbs: string[];
}

export function grantRules(role: JsonObject): GrantRule[] {
  return arrayAt(role, 'rules')
    .map((rule) => ({
      apiGroups: stringsAt(rule, 'apiGroups'),
      resources: stringsAt(rule, 'resources'),
      verbs: stringsAt(rule, 'verbs').filter((verb) => VERBS.includes(verb)),
    }))
    .filter(({ verbs, resources }) => verbs.length > 0 && resources.length > 0);
}

/** ServiceAccounts of a binding, each with every such rule of its role. */
export function grantsOf(
  binding: JsonObject,
  rulesOf: (kind: string, namespace: string | undefined, name: string) => GrantRule[],
): Grant[] {
  const namespace = stringAt(binding, 'metadata', 'namespace');
  const role = stringAt(binding, 'roleRef', 'name') ?? '';
  const roleKind = stringAt(binding, 'roleRef', 'kind') ?? '';
  const rules = rulesOf(roleKind, namespace, role);
  if (rules.length === 0) return [];
  return arrayAt(binding, 'subjects')
    .filter((subject) => stringAt(subject, 'kind') === 'ServiceAccount')
    .flatMap((subject) =>
      rules.map((rule) => ({
        serviceAccount: {
          namespace: stringAt(subject, 'namespace') ?? namespace ?? '',
          name: stringAt(subject, 'name') ?? '',
        },
        role: `${roleKind} ${role}`,
        binding: stringAt(binding, 'metadata', 'name') ?? '',
        namespace,
        ...rule,
      })),
    );
}

export function webhookFacts(
  object: JsonObject,
  kind: WebhookFacts['configuration']['kind'],
): WebhookFacts[] {
  const configuration = { kind, name: stringAt(object, 'metadata', 'name') ?? '' };
  return arrayAt(object, 'webhooks').map((webhook) => ({
    configuration,
    name: stringAt(webhook, 'name') ?? '',
    failurePolicy: stringAt(webhook, 'failurePolicy') ?? 'Fail',
    service: serviceRef(at(webhook, 'clientConfig')),
    url: stringAt(webhook, 'clientConfig', 'url'),
    rules: arrayAt(webhook, 'rules').map((rule) => ({
      apiGroups: stringsAt(rule, 'apiGroups'),
      resources: stringsAt(rule, 'resources'),
      operations: stringsAt(rule, 'operations'),
    })),
    namespaceSelector: selectorOf(at(webhook, 'namespaceSelector')),
    objectSelector: selectorOf(at(webhook, 'objectSelector')),
    hasMatchConditions: arrayAt(webhook, 'matchConditions').length > 0,
  }));
}

export function serviceFacts(object: JsonObject): ServiceFacts {
  return {
    namespace: stringAt(object, 'metadata', 'namespace') ?? '',
    name: stringAt(object, 'metadata', 'name') ?? '',
    selector: recordAt(object, 'spec', 'selector'),
  };
}

/** Both shapes: core/v1 (`involvedObject`, `source`) and events.k8s.io/v1 as core/v1 shows it. */
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
    source: stringAt(object, 'source', 'component') ?? stringAt(object, 'reportingComponent') ?? '',
    at:
      stringAt(object, 'lastTimestamp') ??
      stringAt(object, 'series', 'lastObservedTime') ??
      stringAt(object, 'eventTime') ??
      stringAt(object, 'metadata', 'creationTimestamp'),
  };
}

export function leaseFacts(object: JsonObject): LeaseFacts {
  return {
    namespace: stringAt(object, 'metadata', 'namespace') ?? '',
    name: stringAt(object, 'metadata', 'name') ?? '',
    holder: stringAt(object, 'spec', 'holderIdentity'),
    renewTime: stringAt(object, 'spec', 'renewTime'),
    durationSeconds: numberAt(object, 'spec', 'leaseDurationSeconds'),
  };
}

export function attachmentFacts(object: JsonObject): AttachmentFacts {
  return {
    name: stringAt(object, 'metadata', 'name') ?? '',
    attacher: stringAt(object, 'spec', 'attacher') ?? '',
    volume: stringAt(object, 'spec', 'source', 'persistentVolumeName') ?? '',
    node: stringAt(object, 'spec', 'nodeName') ?? '',
    attached: at(object, 'status', 'attached') === true,
    error:
      stringAt(object, 'status', 'detachError', 'message') ??
      stringAt(object, 'status', 'attachError', 'message'),
  };
}

/** kind and bare-metal installers leave it empty or say so. */
export function isOnProvider(node: JsonObject): boolean {
  const id = stringAt(node, 'spec', 'providerID') ?? '';
  return id !== '' && !id.startsWith('kind://') && !id.startsWith('k3s://');
}

function serviceRef(
  clientConfig: Json | undefined,
): { namespace: string; name: string } | undefined {
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
