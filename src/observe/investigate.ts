import type { JsonObject } from '../base/json.ts';
import type { KubernetesApi } from '../kubernetes/api.ts';
import { collectionPath, objectPath } from '../kubernetes/paths.ts';
import { failed, type Read, read } from '../model/read.ts';
import type { CrdFacts, Details, Trial } from '../model/snapshot.ts';
import { readTerminatingNamespaces } from './cluster.ts';
import { all, many, one } from './collections.ts';
import { apiServiceFacts } from './facts.ts';
import { readGrants } from './grants.ts';
import {
  attachmentFacts,
  crdFacts,
  eventFacts,
  isOnProvider,
  leaseFacts,
  objectStatus,
  serviceFacts,
  webhookFacts,
} from './owner-facts.ts';
import type { Questions, TrialRequest } from './questions.ts';
import { readWorkloads } from './workloads.ts';

/** A namespace with a million events is not read to its end to find a hint. */
const MAX_EVENTS = 2_000;
const CRDS_PER_PAGE = 50;

/**
 * Reads what a diagnosis asked for and adds it to what is known. The only request here that is not a
 * read is a dry run: the server checks and stores nothing.
 */
export async function investigate(
  namespace: string,
  questions: Questions,
  known: Details,
  api: KubernetesApi,
  signal: AbortSignal,
): Promise<Details> {
  const details: Details = { ...known };
  const jobs: Promise<void>[] = [];
  const job = <T>(reading: Promise<T>, keep: (value: T) => void): void => {
    jobs.push(reading.then(keep));
  };
  for (const name of questions.crds) {
    const path = `/apis/apiextensions.k8s.io/v1/customresourcedefinitions/${encodeURIComponent(name)}`;
    job(one(api, path, crdFacts, signal), (value) => {
      details.crds = { ...details.crds, [name]: value };
    });
  }
  for (const ref of questions.statuses) {
    // A list of one: `list` is what the sweep needs anyway, and `get` on everything reaches further
    // than it looks (pods/exec, nodes/proxy).
    const path = collectionPath(ref.type, ref.namespace);
    const only = { fieldSelector: `metadata.name=${ref.name}` };
    job(many(api, path, objectStatus, signal, only), (value) => {
      details.statuses = { ...details.statuses, [ref.uid]: firstOf(value) };
    });
  }
  for (const key of questions.services) {
    const [place = '', name = ''] = key.split('/');
    const path = `/api/v1/namespaces/${encodeURIComponent(place)}/services/${encodeURIComponent(name)}`;
    job(one(api, path, serviceFacts, signal), (value) => {
      details.services = { ...details.services, [key]: value };
    });
  }
  for (const place of questions.events) {
    const path = `/api/v1/namespaces/${encodeURIComponent(place)}/events`;
    const options = { fieldSelector: 'type=Warning', maxItems: MAX_EVENTS };
    job(many(api, path, eventFacts, signal, options), (value) => {
      details.events = { ...details.events, [place]: value };
    });
  }
  for (const place of questions.leases) {
    const path = `/apis/coordination.k8s.io/v1/namespaces/${encodeURIComponent(place)}/leases`;
    job(many(api, path, leaseFacts, signal), (value) => {
      details.leases = { ...details.leases, [place]: value };
    });
  }
  for (const request of questions.trials) {
    job(tryRemoval(api, request, signal), (trial) => {
      details.trials = { ...details.trials, [`${request.uid} ${request.finalizer}`]: trial };
    });
  }
  if (questions.workloads) {
    job(readWorkloads(api, signal), (value) => {
      details.workloads = value;
    });
  }
  if (questions.grants) {
    job(readGrants(api, signal, questions.namespaceGrants ? namespace : undefined), (value) => {
      details.grants = value;
    });
  }
  if (questions.webhooks) {
    job(readWebhooks(api, signal), (value) => {
      details.webhooks = value;
    });
  }
  if (questions.provider) {
    // One node tells: managed clouds set spec.providerID on all of them.
    job(many(api, '/api/v1/nodes', isOnProvider, signal, { maxItems: 1 }), (value) => {
      details.isOnProvider = value.ok ? read(value.value.includes(true)) : value;
    });
  }
  if (questions.conversions) {
    // Definitions are big: their schemas are in them.
    const path = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions';
    const converting = (item: JsonObject): CrdFacts[] => {
      const facts = crdFacts(item);
      return facts.conversionService === undefined ? [] : [facts];
    };
    job(many(api, path, converting, signal, { limit: CRDS_PER_PAGE }), (value) => {
      details.conversions = value;
    });
  }
  if (questions.apiServices) {
    const path = '/apis/apiregistration.k8s.io/v1/apiservices';
    job(many(api, path, apiServiceFacts, signal), (value) => {
      details.apiServices = value;
    });
  }
  if (questions.otherTerminating) {
    job(readTerminatingNamespaces(api, namespace, signal), (value) => {
      details.otherTerminating = value;
    });
  }
  if (questions.attachments) {
    const path = '/apis/storage.k8s.io/v1/volumeattachments';
    job(many(api, path, attachmentFacts, signal), (value) => {
      details.attachments = value;
    });
  }
  await Promise.all(jobs);
  return details;
}

function firstOf<T>(list: Read<T[]>): Read<T> {
  if (!list.ok) return list;
  const [first] = list.value;
  return first === undefined
    ? failed({ kind: 'not-found', message: 'it is gone meanwhile' })
    : read(first);
}

function readWebhooks(api: KubernetesApi, signal: AbortSignal): Promise<Details['webhooks'] & {}> {
  const base = '/apis/admissionregistration.k8s.io/v1';
  return all([
    many(
      api,
      `${base}/validatingwebhookconfigurations`,
      (item) => webhookFacts(item, 'ValidatingWebhookConfiguration'),
      signal,
    ),
    many(
      api,
      `${base}/mutatingwebhookconfigurations`,
      (item) => webhookFacts(item, 'MutatingWebhookConfiguration'),
      signal,
    ),
  ]);
}

/**
 * Answers to the trial that say nothing about the owner's request: a right that we lack, a webhook that
 * knows no dry runs, and a failed `test` of the patch, because the object has changed since it was read.
 */
const OUR_OWN =
  /cannot patch resource|does not support dry run|the server rejected our request due to an error in our request/;

/**
 * Would the API server let the finalizer be removed? Pinned to the UID and to the place of the
 * finalizer, and only ever as a dry run: which webhook or policy refuses is in the answer.
 */
async function tryRemoval(
  api: KubernetesApi,
  request: TrialRequest,
  signal: AbortSignal,
): Promise<Trial> {
  const place = `/metadata/finalizers/${request.index}`;
  const sent = await api.send(
    {
      method: 'PATCH',
      path: objectPath(request.type, request.namespace, request.name),
      contentType: 'application/json-patch+json',
      dryRun: true,
      body: [
        { op: 'test', path: '/metadata/uid', value: request.uid },
        { op: 'test', path: place, value: request.finalizer },
        { op: 'remove', path: place },
      ],
    },
    { signal },
  );
  if (sent.ok) return { answer: 'accepted' };
  const { failure } = sent;
  const isOurs = OUR_OWN.test(failure.message);
  const hasAnswer =
    failure.kind === 'forbidden' || failure.kind === 'invalid' || failure.kind === 'server-error';
  return { answer: hasAnswer && !isOurs ? 'refused' : 'unknown', message: failure.message };
}
