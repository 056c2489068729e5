import { Environment } from '@marcbachmann/cel-js';
import type { ObjectFacts, ResourceType } from '../../model/snapshot.ts';

// Evaluates CEL for a request of which only parts are known
// (https://kubernetes.io/docs/reference/using-api/cel/). A value that is not known throws when it is read: CEL's `&&`
// and `||` absorb an error if their other side decides. Every other error is unknown as well.

type Labels = Readonly<Record<string, string>>;

/** The known parts of a request of a deletion that is under way: its namespace is terminating. What is undefined is not known. */
export interface AdmissionRequest {
  operation: 'CREATE' | 'UPDATE' | 'DELETE';
  type: ResourceType;
  object: Pick<ObjectFacts, 'namespace'> & {
    name?: string | undefined;
    labels?: Labels | undefined;
    annotations?: Labels | undefined;
  };
  namespaceLabels?: Labels | undefined;
  /** `unnamed`: some user whom no policy mentions by name. */
  requester: { username: string; groups: readonly string[] } | 'unnamed' | undefined;
}

/** Optional fields catch the library's own errors, and not this one. */
const unknown = (): never => {
  throw new Error('unknown value');
};

/** An object with fields that are not known. A known field without a value is absent. */
class Partial extends Map<string, unknown> {
  override get(key: string): unknown {
    return this.has(key) ? super.get(key) : unknown();
  }
}

/** A text that no expression mentions: the name of a user, a time. */
class Unnamed {}

/** The object that a request does not have: null, and reading a field of it is an error. */
class Nothing extends Partial {}

const CEL = new Environment({
  unlistedVariablesAreDyn: true,
  enableOptionalTypes: true,
  limits: { maxAstNodes: 1_000, maxDepth: 50, maxListElements: 200 },
})
  .registerType('Partial', { ctor: Partial })
  .registerType('Unnamed', { ctor: Unnamed })
  .registerType('Nothing', { ctor: Nothing })
  .registerOperator('Partial == Partial', unknown)
  .registerOperator('Nothing == null', () => true);

/** What may take long, since the text is the cluster's: `+` doubles, patterns backtrack, loops in loops multiply. */
const COSTLY = /\+|\bmatches\b|\bcel\b/;
const LOOP = /\.\s*(?:all|exists|exists_one|map|filter)\s*\(/;
const MAX_LOOPS = 2;
const MAX_LENGTH = 10_000;

function evaluate(expression: string, scope: Record<string, unknown>): unknown {
  if (expression.length > MAX_LENGTH || COSTLY.test(expression)) return undefined;
  if (expression.split(LOOP).length > MAX_LOOPS + 1) return undefined;
  try {
    return CEL.evaluate(expression, scope);
  } catch {
    return undefined;
  }
}

/** Evaluates an expression; `variables` of its policy may read those before them. Undefined: no boolean, or it depends on what is not known. */
export function evaluateCondition(
  expression: string,
  request: AdmissionRequest,
  variables: readonly { name: string; expression: string }[] = [],
): boolean | undefined {
  const known = new Partial();
  const scope = { ...scopeOf(request), variables: known };
  for (const { name, expression: own } of variables) {
    const value = evaluate(own, scope);
    if (value !== undefined) known.set(name, value);
  }
  const value = evaluate(expression, scope);
  return typeof value === 'boolean' ? value : undefined;
}

const partial = (fields: object): Partial => new Partial(Object.entries(fields));
const complete = (fields: object): unknown => new Map(Object.entries(fields));

/** Returns metadata. A text or map is absent if it is empty: the API server stores no empty maps. */
function metadata(fields: Record<string, string | Labels | undefined>, isTerminating = false) {
  const known = Object.entries(fields).flatMap(([key, value]) => {
    if (value === undefined) return [];
    const stored = typeof value === 'string' ? value : complete(value);
    return [[key, Object.keys(value).length > 0 ? stored : undefined]];
  });
  const deletionTimestamp = isTerminating ? new Unnamed() : undefined;
  return partial({ ...Object.fromEntries(known), deletionTimestamp });
}

function scopeOf(request: AdmissionRequest) {
  const { operation, type, object, requester } = request;
  const { group, version, kind, namespaced } = type;
  const { name, namespace } = object;
  const [resource = '', subResource] = type.resource.split('/');
  // Finalizers are removed from terminating objects.
  const stored = partial({ metadata: metadata({ ...object }, operation === 'UPDATE') });
  const place = partial({
    metadata: metadata({ name: namespace, labels: request.namespaceLabels }, true),
    status: partial({ phase: 'Terminating' }),
  });
  const collection = { options: partial({ dryRun: undefined, preconditions: undefined }) };
  return {
    request: partial({
      // Requests for a Namespace name it twice (apiserver, endpoints/request/requestinfo.go).
      namespace: resource === 'namespaces' ? name : namespace,
      ...{ operation, dryRun: false, subResource },
      userInfo: partial(requester === 'unnamed' ? { username: new Unnamed() } : { ...requester }),
      kind: complete({ group, version, kind }),
      resource: complete({ group, version, resource }),
      // The namespace controller deletes a collection, without a name (rest.AdmissionToValidateObjectDeleteFunc) or preconditions.
      ...(operation === 'DELETE' && namespaced ? collection : { name }),
    }),
    object: operation === 'DELETE' ? new Nothing() : stored,
    oldObject: operation === 'CREATE' ? new Nothing() : stored,
    // A cluster-scoped object has none (apiserver, policy/generic/policy_dispatcher.go).
    namespaceObject: namespaced ? place : new Nothing(),
  };
}
