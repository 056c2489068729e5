/** Something that happened during the run. */
export interface TimelineEntry {
  /** ISO 8601, by the API server's clock. */
  at: string;
  event: string;
}
