import type { ApiServer } from '../../stub/api-server.ts';
import type { Bench } from '../bench.ts';

export interface Bad {
  bench: Bench;
  server: ApiServer;
  /** Path of a kubeconfig that works. */
  kubeconfig: string;
}

type Variables = Record<string, string | undefined>;

/** The action with something wrong. */
export interface ActionCase {
  what: string;
  inputs?: (bad: Bad) => Record<string, string>;
  env?: (bad: Bad) => Variables;
  /** The sentence, in an error annotation (a warning where the gate can work all the same). */
  says: RegExp;
  /** The gate does its work: it passes, with a warning or a notice. */
  works?: boolean;
}

/** The terminal with something wrong. */
export interface TerminalCase {
  what: string;
  args: (bad: Bad) => string[];
  env?: (bad: Bad) => Variables;
  says: RegExp;
  exitCode: 0 | 2 | 3;
}
