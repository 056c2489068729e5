/**
 * How much of the report is written, from everything to the bare verdict. Space runs out in whole
 * sections: a cut inside one would leave a table, a fence or a fold open.
 */
export interface Detail {
  /** Rows of the table of findings; 0 leaves the table out. */
  findings: number;
  /** Rows of other tables. */
  rows: number;
  /** Rows of the table of namespaces; 0 leaves the table out. */
  overview: number;
  /** Characters of one quoted text. */
  chars: number;
  /** What nobody reads first: conditions as read, timeline. */
  hasRawData: boolean;
  hasDiagram: boolean;
  /** Chain and evidence of each root cause. */
  hasEvidence: boolean;
  /** Root causes told, and remedies listed. */
  causes: number;
  remedies: number;
  /** Namespaces told in full; the others in a line. */
  namespaces: number;
}

export const FULL: Detail = {
  findings: 200,
  rows: 200,
  overview: 200,
  chars: 300,
  hasRawData: true,
  hasDiagram: true,
  hasEvidence: true,
  causes: 5,
  remedies: 8,
  namespaces: 50,
};

/** The file on disk: nobody counts its bytes, but a million rows would help nobody. */
export const FILE: Detail = {
  ...FULL,
  findings: 2_000,
  rows: 2_000,
  overview: 2_000,
  chars: 2_000,
  causes: 50,
  remedies: 50,
  namespaces: 1_000,
};

const WITHOUT_RAW_DATA: Detail = {
  ...FULL,
  hasRawData: false,
  findings: 100,
  rows: 50,
  overview: 100,
};

const SHORT: Detail = {
  ...WITHOUT_RAW_DATA,
  hasDiagram: false,
  findings: 20,
  rows: 20,
  overview: 50,
  namespaces: 20,
};

const VISIBLE_ONLY: Detail = {
  ...SHORT,
  hasEvidence: false,
  findings: 0,
  rows: 5,
  overview: 20,
  causes: 3,
  remedies: 4,
  namespaces: 10,
};

const VERDICT: Detail = {
  ...VISIBLE_ONLY,
  rows: 0,
  overview: 5,
  chars: 200,
  causes: 1,
  remedies: 2,
  namespaces: 2,
};

/** From the most to the least. */
export const LADDER: readonly Detail[] = [
  FULL,
  WITHOUT_RAW_DATA,
  SHORT,
  VISIBLE_ONLY,
  VERDICT,
  { ...VERDICT, overview: 0, chars: 100, remedies: 0, namespaces: 1 },
];
