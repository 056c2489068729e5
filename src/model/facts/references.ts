import { recordAt } from '../../base/json.ts';
import { shorten } from '../../base/text.ts';
import { MAX_ANNOTATION_CHARS } from './metadata.ts';
import { type Field, shape, text } from './shape.ts';

/**
 * Returns the annotation by which cert-manager's cainjector writes the caBundle of an object (cert-manager
 * pkg/apis/certmanager/v1/types.go).
 */
export const caInjection: Field<string | undefined> = (object) =>
  Object.entries(recordAt(object, 'metadata', 'annotations'))
    .filter(([key]) => /^cert-manager\.io\/inject-(?:ca-from(?:-secret)?|apiserver-ca)$/.test(key))
    .map(([key, value]) => `${key}=${shorten(value, MAX_ANNOTATION_CHARS)}`)[0];

export type ServiceRef = ReturnType<typeof serviceRef>;
export const serviceRef = shape({ namespace: text('namespace'), name: text('name') });

/**
 * Returns the Service whose DNS name is the host of an address, like https://NAME.NAMESPACE.svc:8443/path; undefined
 * for other hosts. For a webhook that names a Service, the API server calls such an address.
 */
export function serviceInUrl(url = ''): ServiceRef | undefined {
  const host = /^https:\/\/([^./:]{1,63})\.([^./:]{1,63})\.svc(?:\.cluster\.local)?\.?(?:[/:]|$)/i;
  const [, name, namespace] = host.exec(url) ?? [];
  return name && namespace ? { namespace, name } : undefined;
}
