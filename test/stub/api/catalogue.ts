import {
  arrayAt,
  isObject,
  type Json,
  type JsonObject,
  stringAt,
  stringsAt,
} from '../../../src/base/json.ts';
import type { RecordedAnswer, Recording } from '../recording.ts';
import type { Form } from './accept.ts';
import type { ServedType } from './routes.ts';

/** Discovery as recorded, and the resource types that follow from it. */
export class Catalogue {
  readonly types: readonly ServedType[];
  readonly #recording: Recording;
  readonly #gone = new Set<string>();

  constructor(recording: Recording) {
    this.#recording = recording;
    const definitions = recording.collections.find(
      ({ resource }) => resource === 'customresourcedefinitions',
    );
    const custom = new Set(definitions?.objects.map((crd) => stringAt(crd, 'metadata', 'name')));
    this.types = Object.entries(recording.discovery.legacy).flatMap(([path, answer]) =>
      isObject(answer.body) ? typesOf(path, answer.body, custom) : [],
    );
  }

  /** `/api`, `/apis`, `/apis/apps`, `/apis/apps/v1`; undefined when the path is none of these. */
  answer(path: string, form: Form): RecordedAnswer | undefined {
    const { aggregated, legacy } = this.#recording.discovery;
    if (form === 'aggregated-discovery' && (path === '/api' || path === '/apis')) {
      const answer = aggregated[path];
      if (answer === undefined || !isObject(answer.body)) return answer;
      return { ...answer, body: this.#withoutGone(answer.body, 'items') };
    }
    if (this.#gone.has(path)) return undefined;
    const answer = legacy[path];
    if (path === '/apis' && answer !== undefined && isObject(answer.body)) {
      return { ...answer, body: this.#withoutGone(answer.body, 'groups') };
    }
    return answer ?? this.#group(path);
  }

  /** The aggregator's answer for every path of a group-version whose backend is unavailable. */
  fault(prefix: string): RecordedAnswer | undefined {
    const answer = this.#recording.discovery.legacy[prefix];
    return answer === undefined || answer.status === 200 ? undefined : answer;
  }

  /** The paths of the group-versions whose backend is unavailable. */
  faults(): string[] {
    return Object.keys(this.#recording.discovery.legacy).filter(
      (path) => this.serves(path) && this.fault(path) !== undefined,
    );
  }

  /** As after `kubectl delete apiservice`: the group-version is not served any more. */
  dropGroupVersion(group: string, version: string): void {
    this.#gone.add(`/apis/${group}/${version}`);
  }

  serves(prefix: string): boolean {
    return !this.#gone.has(prefix) && Object.hasOwn(this.#recording.discovery.legacy, prefix);
  }

  #group(path: string): RecordedAnswer | undefined {
    const groups = this.answer('/apis', 'full')?.body;
    const name = /^\/apis\/([^/]+)$/.exec(path)?.[1];
    const group = isObject(groups)
      ? arrayAt(groups, 'groups').find((entry) => stringAt(entry, 'name') === name)
      : undefined;
    if (!isObject(group)) return undefined;
    const body = { kind: 'APIGroup', apiVersion: 'v1', ...group };
    return { status: 200, contentType: 'application/json', body };
  }

  #withoutGone(document: JsonObject, list: 'items' | 'groups'): JsonObject {
    if (this.#gone.size === 0) return document;
    const groups = arrayAt(document, list).flatMap((group): Json[] => {
      if (!isObject(group)) return [];
      const name = stringAt(group, 'metadata', 'name') ?? stringAt(group, 'name');
      const versions = arrayAt(group, 'versions').filter(
        (version) => !this.#gone.has(`/apis/${name}/${stringAt(version, 'version')}`),
      );
      return versions.length === 0 ? [] : [{ ...group, versions }];
    });
    return { ...document, [list]: groups };
  }
}

function typesOf(
  path: string,
  list: JsonObject,
  custom: ReadonlySet<string | undefined>,
): ServedType[] {
  const resources = arrayAt(list, 'resources');
  const names = resources.map((resource) => stringAt(resource, 'name') ?? '');
  const [version = '', group = ''] = path.split('/').slice(2).reverse();
  return resources.flatMap((resource, index): ServedType[] => {
    const name = names[index] ?? '';
    if (name === '' || name.includes('/') || !isObject(resource)) return [];
    return [
      {
        group,
        version,
        resource: name,
        kind: stringAt(resource, 'kind') ?? '',
        namespaced: resource['namespaced'] === true,
        verbs: stringsAt(resource, 'verbs'),
        isCustom: custom.has(`${name}.${group}`),
        subresources: names
          .filter((other) => other.startsWith(`${name}/`))
          .map((other) => other.slice(name.length + 1)),
        collection: `${path}/${name}`,
      },
    ];
  });
}
