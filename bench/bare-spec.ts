/** What the bare client reads, and how. */
export interface BareSpec {
  server: string;
  ca: string;
  connections: number;
  collections: {
    path: string;
    /** Of each page; 0: no limit. */
    limits: number[];
    /** Those that the gate sends for this collection. */
    headers: Record<string, string>;
  }[];
}
