import type { Remedy } from '../../model/finding.ts';
import type { ApiServiceFacts } from '../../model/snapshot.ts';
import { apiVersionOf, type TypeRef, typeName } from '../display.ts';
import type { CallFailure, ServiceRef } from '../error-kinds.ts';
import { kubectl, named, patchCommand } from './commands.ts';
import { serviceRemedy } from './services.ts';

/** Availability is checked every 30 s, and a failed pass over a namespace repeated within 60 s. */
const HEALS = 'namespaces then go by themselves within 90 s';

/** An APIService whose backend does not answer. */
export function apiServiceRemedies(input: {
  service: ApiServiceFacts;
  /** The backend was in the namespace that is being deleted. */
  insideNamespace: boolean;
}): Remedy[] {
  const { service, insideNamespace } = input;
  const remove = deleteApiService(service);
  if (service.service === undefined) return [remove];
  const { namespace, name } = service.service;
  if (insideNamespace) {
    return [
      {
        role: 'next',
        text: 'Delete the APIService before its backend, or install the backend in a namespace that stays',
      },
      {
        ...remove,
        text: `Delete the APIService: its backend, Service ${namespace}/${name}, is being deleted with the namespace; ${HEALS}`,
      },
    ];
  }
  return [bringBack(service, { namespace, name }), remove];
}

/** Reasons of the `Available` condition: kube-aggregator remote_available_controller.go. */
function bringBack(service: ApiServiceFacts, backend: ServiceRef): Remedy {
  const place = `${backend.namespace}/${backend.name}`;
  switch (service.available?.reason) {
    case 'ServiceNotFound':
      return {
        text: `Bring Service ${place} back (install again what served it); ${HEALS}`,
        command: kubectl('get', 'all', '-n', backend.namespace),
      };
    case 'ServicePortError':
      return {
        text: `Make Service ${place} listen on port ${service.service?.port ?? 443}, which the APIService names; ${HEALS}`,
        command: kubectl(
          'get',
          ...named('service', backend.name),
          '-n',
          backend.namespace,
          '-o',
          'yaml',
        ),
      };
    case 'EndpointsNotFound':
    case 'MissingEndpoints':
      return {
        text: `Bring a ready pod behind Service ${place}; ${HEALS}`,
        command: serviceRemedy(backend).command ?? '',
      };
    case 'ServiceAccessError':
    case 'EndpointsAccessError':
      return {
        text: `The API server could not check Service ${place}; see what it says now`,
        command: kubectl('describe', 'apiservice', service.name),
      };
    default:
      return {
        text: `Make the backend behind Service ${place} answer; ${HEALS}. See what comes back now`,
        command: kubectl('get', '--raw', `/apis/${service.group}/${service.version}`),
      };
  }
}

/** Groups that others rely on, where the loss can be named. */
const LOSSES: Record<string, string> = {
  'metrics.k8s.io': 'kubectl top and autoscaling on CPU and memory stop',
  'custom.metrics.k8s.io': 'autoscaling on its metrics stops',
  'external.metrics.k8s.io': 'autoscaling on its metrics stops',
};

function deleteApiService(service: Pick<ApiServiceFacts, 'name' | 'group' | 'version'>): Remedy {
  const loss = Object.hasOwn(LOSSES, service.group) ? LOSSES[service.group] : undefined;
  return {
    role: 'or',
    text: 'If its software was removed for good, delete the APIService',
    command: kubectl('delete', ...named('apiservice', service.name)),
    risk: `${service.group}/${service.version} disappears for the whole cluster${loss === undefined ? '' : `: ${loss}`}`,
  };
}

/**
 * Discovery of a group fails although its APIService passes the check: the check asks for
 * /apis/<group>/<version>, aggregated discovery for /apis (kube-aggregator handler_discovery.go).
 */
export function discoveryRemedies(input: {
  group: string;
  version: string;
  /** Absent when the APIService could not be read. */
  service: ApiServiceFacts | undefined;
}): Remedy[] {
  const { group, version, service } = input;
  const backend = service?.service;
  if (backend === undefined) {
    return [
      {
        text: 'Wait while the control plane is being upgraded: its API servers then know different versions, and this passes',
      },
      {
        role: 'look',
        text: 'If it stays, see what the API server answers, and its log',
        command: kubectl(
          'get',
          '--raw',
          group === '' ? `/api/${version}` : `/apis/${group}/${version}`,
        ),
      },
    ];
  }
  const place = `${backend.namespace}/${backend.name}`;
  const proxy = `/api/v1/namespaces/${backend.namespace}/services/https:${backend.name}:${backend.port ?? 443}/proxy/apis`;
  return [
    {
      text: `Make the backend behind Service ${place} answer /apis with 200 within 5 s (or with 404, which is taken as "ask per version"); ${HEALS}. See what comes back now`,
      command: kubectl('get', '--raw', proxy),
    },
    {
      role: 'look',
      text: 'See its pods; a restart often mends a backend that is half alive',
      command: serviceRemedy(backend).command ?? '',
    },
    deleteApiService(service ?? { name: `${version}.${group}`, group, version }),
  ];
}

/** An API that is available and yet fails to list or delete one type. */
export function apiFailingRemedies(input: {
  type: TypeRef;
  namespace: string;
  /** Of the APIService of the group; absent when the API server serves the type itself. */
  backend?: ServiceRef | undefined;
}): Remedy[] {
  const { type, namespace, backend } = input;
  const root = type.group === '' ? '/api' : '/apis';
  const list = `${root}/${apiVersionOf(type)}/namespaces/${namespace}/${type.resource}?limit=1`;
  return [
    {
      text: `Make the API of ${typeName(type)} answer; see what comes back now`,
      command: kubectl('get', '--raw', list),
    },
    backend === undefined
      ? { text: 'The log of kube-apiserver has the error' }
      : serviceRemedy(
          backend,
          `Its backend is Service ${backend.namespace}/${backend.name}: see its pods and their logs`,
        ),
  ];
}

/** Objects of a CRD that cannot be read because their conversion fails. */
export function conversionWebhookRemedies(input: {
  crd: string;
  cause: CallFailure;
  service?: ServiceRef | undefined;
  insideNamespace: boolean;
}): Remedy[] {
  const { crd, cause, service, insideNamespace } = input;
  const convert = patchCommand(
    named('crd', crd),
    JSON.stringify([{ op: 'replace', path: '/spec/conversion', value: { strategy: 'None' } }]),
  );
  const stop: Remedy = {
    role: 'or',
    text: 'If its software was removed for good, let the API server do without the webhook',
    command: convert,
    risk: 'objects stored in another version are served as they were written: fields that were renamed or moved read as missing, in the whole cluster',
  };
  const back = serviceRemedy(service, undefined, cause);
  if (!insideNamespace) return [back, stop];
  return [
    {
      role: 'next',
      text: 'Delete the objects and the CRD before the namespace of the conversion webhook',
    },
    {
      ...stop,
      role: 'or',
      text: 'Let the API server do without the webhook: its Service is being deleted with the namespace',
    },
  ];
}
