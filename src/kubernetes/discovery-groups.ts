import type { FailedGroup, ResourceType } from './api.ts';

/** One group with its versions, the preferred one first. */
export interface ServedGroup {
  name: string;
  preferredVersion: string;
  versions: { version: string; types: ResourceType[] }[];
}

export interface GroupsRead {
  groups: ServedGroup[];
  failedGroups: FailedGroup[];
}
