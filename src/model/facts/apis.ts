import { conditionsOf, INSTALLED } from './metadata.ts';
import { ifAny, NAME, shape, text, textIfAny, texts } from './shape.ts';

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
