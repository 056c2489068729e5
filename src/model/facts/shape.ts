import {
  arrayAt,
  isObject,
  type Json,
  numberAt,
  recordAt,
  stringAt,
  stringsAt,
  valueAt,
} from '../../base/json.ts';
import { shorten } from '../../base/text.ts';

/** A shape names each fact that is kept of an object, and reads it. A field of an unexpected type is left out. */
export type Field<T> = (object: Json | undefined) => T;
type Fields = Record<string, Field<unknown>>;
/** A fact that may be undefined may also be absent, as in snapshots that were recorded earlier. */
type Shape<S extends Fields> = {
  [K in keyof S as undefined extends ReturnType<S[K]> ? never : K]: ReturnType<S[K]>;
} & { [K in keyof S as undefined extends ReturnType<S[K]> ? K : never]?: ReturnType<S[K]> };

export function shape<S extends Fields>(fields: S): Field<Shape<S>> {
  const entries = Object.entries(fields);
  return (object) => {
    const facts: Record<string, unknown> = {};
    for (const [key, read] of entries) facts[key] = read(object);
    return facts as Shape<S>;
  };
}

export function fieldAt<T>(path: string, read: Field<T>): Field<T> {
  const keys = path.split('.');
  return (object) => read(valueAt(object, ...keys));
}

export const text = (path: string, otherwise = '') =>
  fieldAt(path, (value) => stringAt(value) ?? otherwise);
/** What a controller may write at any length is cut where it is read. */
export const MAX_MESSAGE_CHARS = 4_096;
export const message = (path: string) =>
  fieldAt(path, (value) => shorten(stringAt(value) ?? '', MAX_MESSAGE_CHARS));
export const textIfAny = (path: string) => fieldAt(path, (value) => stringAt(value));
export const number = (path: string) => fieldAt(path, (value) => numberAt(value));
export const isTrue = (path: string) => fieldAt(path, (value) => value === true);
export const texts = (path: string) => fieldAt(path, (value) => stringsAt(value));
export const record = (path: string) => fieldAt(path, (value) => recordAt(value));
export const each = <T>(path: string, read: Field<T>) =>
  fieldAt(path, (value) => arrayAt(value).map((item) => read(item)));
export const textOfEach = (path: string, key: string) =>
  fieldAt(path, (value) => arrayAt(value).flatMap((item) => stringAt(item, key) ?? []));

export const NAME = { name: text('metadata.name') };
export const PLACED = { namespace: text('metadata.namespace'), ...NAME };

/** Types a fact that snapshots which were recorded earlier do not have. */
export const newer = <T>(read: Field<T>): Field<T | undefined> => read;

export const ifAny = <T>(path: string, read: Field<T>): Field<T | undefined> =>
  fieldAt(path, (value) => (isObject(value) ? read(value) : undefined));

export type LabelRequirement = ReturnType<typeof requirement>;
const requirement = shape({
  key: text('key'),
  operator: text('operator'),
  values: texts('values'),
});

/** A missing or empty label selector matches everything (apimachinery, metav1.LabelSelectorAsSelector). */
export const selector = (path: string): Field<LabelRequirement[]> =>
  fieldAt(path, labelRequirements);

export function labelRequirements(value: Json | undefined): LabelRequirement[] {
  return [
    ...Object.entries(recordAt(value, 'matchLabels')).map(([key, label]) => ({
      key,
      operator: 'In',
      values: [label],
    })),
    ...each('matchExpressions', requirement)(value),
  ];
}

/** Reports whether the selector matches objects of this namespace only. */
export function isOnlyFor(namespace: string, selector: readonly LabelRequirement[]): boolean {
  return selector.some(
    ({ key, operator, values }) =>
      key === 'kubernetes.io/metadata.name' &&
      operator === 'In' &&
      values.every((value) => value === namespace),
  );
}
