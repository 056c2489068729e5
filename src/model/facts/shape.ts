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

/** Reads a fact of an object. A field of an unexpected type is left out. */
export type Field<T> = (object: Json | undefined) => T;
type Fields = Record<string, Field<unknown>>;
/** A fact that may be undefined may also be absent, as in snapshots that were recorded earlier. */
type Shape<S extends Fields> = {
  [K in keyof S as undefined extends ReturnType<S[K]> ? never : K]: ReturnType<S[K]>;
} & { [K in keyof S as undefined extends ReturnType<S[K]> ? K : never]?: ReturnType<S[K]> };

/** Names the facts that are kept of an object, and reads them. */
export function shape<S extends Fields>(fields: S): Field<Shape<S>> {
  const entries = Object.entries(fields);
  return (object) => {
    const facts: Record<string, unknown> = {};
    for (const [key, read] of entries) facts[key] = read(object);
    return facts as Shape<S>;
  };
}

function field<T>(path: string, read: Field<T>): Field<T> {
  const keys = path.split('.');
  return (object) => read(valueAt(object, ...keys));
}

/** What a controller may write at any length is cut where it is read. */
export const MAX_MESSAGE_CHARS = 4_096;

/** Facts at a path. */
export const at = {
  field,
  text: (path: string, otherwise = '') => field(path, (value) => stringAt(value) ?? otherwise),
  textIfAny: (path: string) => field(path, (value) => stringAt(value)),
  message: (path: string) =>
    field(path, (value) => shorten(stringAt(value) ?? '', MAX_MESSAGE_CHARS)),
  number: (path: string) => field(path, (value) => numberAt(value)),
  isTrue: (path: string) => field(path, (value) => value === true),
  texts: (path: string) => field(path, (value) => stringsAt(value)),
  record: (path: string) => field(path, (value) => recordAt(value)),
  each: <T>(path: string, read: Field<T>) =>
    field(path, (value) => arrayAt(value).map((item) => read(item))),
  textOfEach: (path: string, key: string) =>
    field(path, (value) => arrayAt(value).flatMap((item) => stringAt(item, key) ?? [])),
  ifAny: <T>(path: string, read: Field<T>) =>
    field(path, (value) => (isObject(value) ? read(value) : undefined)),
  selector: (path: string) => field(path, labelRequirements),
};

export const NAME = { name: at.text('metadata.name') };
export const PLACED = { namespace: at.text('metadata.namespace'), ...NAME };

/** Types a fact that snapshots which were recorded earlier do not have. */
export const newer = <T>(read: Field<T>): Field<T | undefined> => read;

export type LabelRequirement = ReturnType<typeof requirement>;
const requirement = shape({
  key: at.text('key'),
  operator: at.text('operator'),
  values: at.texts('values'),
});
const requirements = at.each('matchExpressions', requirement);

/** A missing or empty label selector matches everything (apimachinery, metav1.LabelSelectorAsSelector). */
export function labelRequirements(value: Json | undefined): LabelRequirement[] {
  const labels = Object.entries(recordAt(value, 'matchLabels'));
  const equal = labels.map(([key, label]) => ({ key, operator: 'In', values: [label] }));
  return [...equal, ...requirements(value)];
}
