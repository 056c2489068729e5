import { type NamespaceConditions, namespaceConditions } from '../model/conditions.ts';
import type { Condition } from '../model/snapshot.ts';
import { type ContentError, classifyErrorText } from './error-texts.ts';
import { remember } from './remember.ts';

export interface ParsedConditions extends Omit<NamespaceConditions, 'contentFailure'> {
  /** The types that could not be deleted, and why. */
  contentFailure: { errors: ContentError[] } | undefined;
}

export const parseConditions = remember((conditions: readonly Condition[]): ParsedConditions => {
  const { contentFailure: text, ...said } = namespaceConditions(conditions);
  const contentFailure = text === undefined ? undefined : { errors: classifyErrorText(text) };
  return { ...said, contentFailure };
});
