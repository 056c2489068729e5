import { type Json, recordAt } from '../../base/json.ts';
import { each, type Field, fieldAt, shape, text, texts } from './shape.ts';

export type LabelRequirement = ReturnType<typeof requirement>;
const requirement = shape({
  key: text('key'),
  /** One of In, NotIn, Exists, DoesNotExist. */
  operator: text('operator'),
  values: texts('values'),
});

/**
 * Reads a label selector. A missing or empty selector matches everything (apimachinery,
 * metav1.LabelSelectorAsSelector).
 */
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
