import type { JsonObject } from '../../src/base/json.ts';
import type { FindingCode } from '../../src/model/finding.ts';
import type { Ref } from '../cluster/client.ts';
import type { Installation } from './bed.ts';
import type { Sources } from './manifests.ts';

/** A real operator: how it is built, installed, used and broken. */
export interface Product {
  name: string;
  /** Folder in `modules/`. */
  module: string;
  /** Takes long to build: only where `OPERATORS` asks for it. */
  onRequest?: true;
  /** Go packages by the name that their program has in the image. */
  programs: Readonly<Record<string, string>>;
  /**
   * Entry points by the last name of the image. `$(KUBECONFIG)` and `$(POD_NAMESPACE)` stand for what a
   * program finds in its container without being told.
   */
  images: Readonly<Record<string, readonly string[]>>;
  /** Where its users install it. */
  namespace: string;
  /** What its users install, from the files of its own modules. */
  manifests(sources: Sources, namespace: string): Promise<JsonObject[]>;
  /** More arguments of its containers, by image. */
  flags?: Readonly<Record<string, readonly string[]>>;
  /** Made beside the namespace under test: classes and the like. */
  prerequisites?: (namespace: string) => JsonObject[];
  /** What an environment makes use of it with. */
  environment(namespace: string): JsonObject[];
  /** What in the environment holds the namespace while nobody removes its finalizer. */
  held: { kind: string; finalizer: string };
  /** The Deployment that has to act. */
  owner: string;
  /** What the owner has to write to finish: taken away in one of the situations. */
  right?: { apiGroup: string; resource: string };
  /** By which one of its pods leads. */
  lease?: { namespace: string; name: string };
  /** Ways to fail that others do not have. */
  special?: Readonly<Record<string, Situation>>;
  /** What is true of it where that is not what is true of most operators. */
  truths?: Partial<Record<SituationName, (installed: Installation) => Truth>>;
}

export const SITUATIONS = [
  'healthy',
  'without a right',
  'without its Lease',
  'scaled to zero',
  'uninstalled',
  'its namespace deleted',
  'somewhere else, under another name, scaled to zero',
  'somewhere else, under another name, uninstalled',
  'in the environment itself',
] as const;

export type SituationName = (typeof SITUATIONS)[number];

export interface Situation {
  /** What is in the environment instead of what the product says. */
  environment?: (namespace: string) => JsonObject[];
  /** After the environment is in use, before its deletion. */
  breakIt?: (installed: Installation) => Promise<void>;
  /** Makes everything as it was before; frees the environment unless nothing can. */
  restore?: (installed: Installation) => Promise<void>;
  truth: (installed: Installation) => Truth;
}

/** What is true, whoever looks. */
export interface Truth {
  outcome: 'deleted' | 'stuck';
  /** Where the chains end: each of these, and nothing else. */
  roots?: readonly Root[];
  deadlock?: boolean | 'either';
  /** Nothing that can be restored frees it: only hands do. */
  isFinal?: true;
}

export interface Root {
  code: readonly FindingCode[];
  subject?: Partial<Ref>;
  /** Must be found in its message or evidence. */
  says?: readonly RegExp[];
}
