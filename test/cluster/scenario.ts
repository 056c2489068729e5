import type { Certainty, FindingCode } from '../../src/model/finding.ts';
import type { Outcome } from '../../src/model/outcome.ts';
import type { Report, ReportNamespace } from '../../src/report/report-json.ts';
import type { KubernetesVersion } from './build.ts';
import type { Ref } from './client.ts';
import type { ControlPlaneOptions } from './control-plane.ts';
import type { Identity } from './identities.ts';
import type { World } from './world.ts';

/** One situation on a real API server and what the gate must say about it. */
export interface Scenario {
  /** As in the issue or article that taught it; `-t S7` runs it. */
  id: string;
  title: string;
  /** Base name of the namespace under test; `preview-<id>` unless given. */
  namespace?: string;
  /**
   * `true`: it disturbs other namespaces, so it is not for a cluster that is there already. `new`, or with options: it
   * disturbs the servers, so it gets a control plane that nobody has used before, and nobody will.
   */
  own?: true | 'new' | Omit<ControlPlaneOptions, 'version'>;
  /**
   * Needs pods that really run, or also the program of `kind/agent`: on kind only, after all others and alone, for it
   * disturbs the node. CI runs the former.
   */
  needs?: 'kubelet' | 'agents';
  /** Versions that can show it; all unless given. */
  versions?: readonly KubernetesVersion[];
  /** Who the gate is; `teardown-reader` unless given. */
  identity?: Identity;
  setUp(world: World): Promise<void>;
  /** Asks for the deletion; `false`: nobody does before the gate starts. */
  delete?: false | ((world: World) => Promise<void>);
  /** Waits until the controllers have brought it to the hang, by looking; default: conditions. */
  settle?: (world: World) => Promise<unknown>;
  /** Goes on while the gate runs. Starts with it; its failure fails the scenario. */
  meanwhile?: (world: World, gate: RunningGate) => Promise<unknown>;
  /** Inputs besides the namespace, the kubeconfig and the time-out. */
  inputs?: Record<string, string>;
  expect: (world: World) => Expectation | Promise<Expectation>;
  /** What commands of remedies may change besides the subjects that are expected and the namespace. */
  mayChange?: (world: World) => readonly Partial<Ref>[];
  /** Why no printed command can free it here. */
  beyondCommands?: string;
}

/** The gate as the steps beside it see it. */
export interface RunningGate {
  /** Resolves when it has written a line that matches to its log. */
  says(pattern: RegExp): Promise<void>;
}

export interface Expectation {
  outcome: Outcome;
  /**
   * From the namespace to a root cause; the last link of each is the root cause. None: no finding. `any`:
   * only what else is said here counts.
   */
  chains?: readonly (readonly Link[])[] | 'any';
  /** Where several answers are honest: each replaces what it names, and one of them must hold. */
  anyOf?: readonly Partial<Omit<Expectation, 'anyOf'>>[];
  /** Who is innocent: no root cause, no blocker, and in no finding the owner of anything. */
  never?: readonly Innocent[];
  /** Findings that may be there but are neither blocker nor root cause. */
  contributing?: readonly Link[];
  deadlock?: boolean;
  /** Kinds that must be in `queued`; with `exactly`, the only ones. */
  queued?: { kinds: readonly string[]; exactly?: boolean };
  /** Words that entries of `notInspected` must contain, one entry each. None: it must be empty. */
  notInspected?: readonly (string | RegExp)[];
  /** Exit code of the process, where the outcome alone does not tell it. */
  exitCode?: number;
  /** Requests with which the gate may change something, as `verb resource/name`; default: none. */
  mutations?: readonly string[];
  /** What else must hold. Throws to fail. */
  also?: (seen: Seen) => void | Promise<void>;
}

/** Who must not be blamed: everything that has these members. */
export interface Innocent extends Partial<Ref> {
  code?: FindingCode;
}

/** A finding by what identifies it. */
export interface Link {
  /** Several where the vocabulary has no word of its own for it. */
  code: FindingCode | readonly FindingCode[];
  subject: Ref | 'any';
  finalizer?: string;
  certainty?: readonly Certainty[];
  /** Must be found in its message, in its evidence or in what comes next. */
  says?: readonly RegExp[];
  /** Must be found in its remedies. */
  advises?: readonly RegExp[];
}

/** What a run left behind. */
export interface Seen {
  world: World;
  report: Report;
  namespace: ReportNamespace;
  outputs: Record<string, string>;
  summary: string;
  stdout: string;
  elapsedMs: number;
}
