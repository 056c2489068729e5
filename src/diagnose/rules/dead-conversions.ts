import type { Draft, View } from '../draft.ts';
import type { ContentError } from '../error-texts.ts';
import { conversionDraft } from './failing-types.ts';

/** "storage is (re)initializing", without the type: all that Kubernetes <= 1.32 says of a dead conversion. */
export function isInitializing(error: ContentError): boolean {
  return error.kind === 'storage' && error.problem === 'initializing';
}

/** CRDs whose conversion webhook has no Service any more: the API server cannot fill their caches. */
export function deadConversions(view: View, error: ContentError): Draft[] {
  const { conversions, services } = view.now.details ?? {};
  if (conversions?.ok !== true) return [];
  return conversions.value.flatMap(({ group, kind, conversionService: service }) => {
    if (service === undefined) return [];
    const read = services?.[`${service.namespace}/${service.name}`];
    if (read?.ok !== true || read.value !== undefined) return [];
    const { namespace, name } = service;
    return conversionDraft(view, {
      kind: 'conversion-failed',
      group,
      version: '',
      objectKind: kind,
      cause: 'service-not-found',
      service,
      url: undefined,
      text: `${error.text}; its conversion goes to Service ${namespace}/${name}, which does not exist`,
      count: error.count,
    });
  });
}
