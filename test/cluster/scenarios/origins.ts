import type { Scenario } from '../scenario.ts';

/** Owners that leave few traces, and could be mistaken for missing or for others. */
export const origins: readonly Scenario[] = [];
