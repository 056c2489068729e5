import type { ObjectFacts, ResourceType } from '../model/snapshot.ts';

/**
 * Evaluates the part of CEL in which match conditions are usually written: `==`, `!=`, `in`, `has()`, string
 * functions, `exists`, `all`, optional fields. An expression with any other syntax, and every CEL error, is unknown, as in
 * https://kubernetes.io/docs/reference/using-api/cel/.
 */

/** A value that is not known here, or a CEL error. */
const UNKNOWN: unique symbol = Symbol('unknown');
/** A text that no expression mentions: the name of a user, a time. */
const UNNAMED = Symbol('a text that the expression does not name');
/** A field that the object does not have: no value, but `has()` and `orValue()` can tell. */
const ABSENT = Symbol('absent');

type Value =
  | string
  | boolean
  | null
  | typeof UNKNOWN
  | typeof UNNAMED
  | typeof ABSENT
  | readonly Value[]
  | Fields;

/** Reads a field of an object. */
type Fields = (key: string) => Value;

/** The user that sends a request, with all groups that its authenticator adds. */
export interface Requester {
  username: string;
  groups: readonly string[];
}

/** A named expression of a policy, which its other expressions read as `variables.<name>`. */
export interface Variable {
  name: string;
  expression: string;
}

/** The known parts of a request to the admission chain. */
export interface AdmissionRequest {
  operation: 'CREATE' | 'UPDATE' | 'DELETE';
  type: ResourceType;
  object: Pick<ObjectFacts, 'name' | 'namespace' | 'labels'> & {
    annotations?: Readonly<Record<string, string>> | undefined;
  };
  /** Labels of the object's namespace; undefined if they are not known. */
  namespaceLabels?: Readonly<Record<string, string>> | undefined;
  /** `unnamed`: some user whom no policy mentions by name. Undefined: not known at all. */
  requester: Requester | 'unnamed' | undefined;
  isDryRun: boolean;
  /** Whether the object is being deleted when the request is sent. */
  isTerminating: boolean;
  /** Whether its namespace is being deleted then. */
  isNamespaceTerminating: boolean;
}

/**
 * Evaluates one expression for a request; `variables` are those of its policy.
 * @returns undefined if the result is not a boolean or depends on something that is not known
 */
export function evaluateCondition(
  expression: string,
  request: AdmissionRequest,
  variables: readonly Variable[] = [],
): boolean | undefined {
  const value = parse(expression)?.(withVariables(environmentOf(request), variables));
  return typeof value === 'boolean' ? value : undefined;
}

/**
 * Reports whether a webhook or policy with these match conditions is asked about the request: one that is false
 * is enough to be left out, whatever the others are (KEP-3716).
 */
export function meetsConditions(
  conditions: readonly string[],
  request: AdmissionRequest,
): boolean | undefined {
  const results = conditions.map((condition) => evaluateCondition(condition, request));
  if (results.includes(false)) return false;
  return results.includes(undefined) ? undefined : true;
}

type Scope = ReadonlyMap<string, Value>;

function environmentOf(request: AdmissionRequest): Scope {
  const { operation, type, object, namespaceLabels, requester } = request;
  const { isDryRun, isNamespaceTerminating, isTerminating } = request;
  const [resource = '', subResource = ''] = type.resource.split('/');
  const { group, version, kind } = type;
  const stored = partial({
    metadata: partial({
      name: object.name,
      namespace: orAbsent(object.namespace),
      labels: strings(object.labels),
      annotations: strings(object.annotations),
      deletionTimestamp: isTerminating ? UNNAMED : ABSENT,
    }),
  });
  // The namespace controller deletes a collection (pkg/controller/namespace/deletion, deleteCollection).
  const isOfMany = operation === 'DELETE' && type.namespaced;
  const dryRun = isDryRun ? ['All'] : ABSENT;
  const preconditions = isDryRun ? UNKNOWN : ABSENT;
  const place = partial({
    metadata: partial({
      name: orAbsent(object.namespace),
      labels: strings(namespaceLabels),
      deletionTimestamp: isNamespaceTerminating ? UNNAMED : ABSENT,
    }),
    status: partial({ phase: isNamespaceTerminating ? 'Terminating' : 'Active' }),
  });
  return new Map<string, Value>([
    [
      'request',
      partial({
        // Requests for a Namespace name it twice (apiserver, endpoints/request/requestinfo.go).
        namespace: resource === 'namespaces' ? object.name : object.namespace,
        operation,
        userInfo: partial(requester === 'unnamed' ? { username: UNNAMED } : { ...requester }),
        dryRun: isDryRun,
        options: isOfMany
          ? partial({ propagationPolicy: 'Background', dryRun, preconditions })
          : UNKNOWN,
        subResource: orAbsent(subResource),
        kind: complete({ group, version, kind }),
        resource: complete({ group, version, resource }),
        // A deletion of a collection has no name (apiserver, rest.AdmissionToValidateObjectDeleteFunc).
        name: isOfMany ? UNKNOWN : object.name,
      }),
    ],
    ['object', operation === 'DELETE' ? null : stored],
    ['oldObject', operation === 'CREATE' ? null : stored],
    // A cluster-scoped object has none (apiserver, policy/generic/policy_dispatcher.go).
    ['namespaceObject', type.namespaced ? place : null],
    ['true', true],
    ['false', false],
    ['null', null],
  ]);
}

/** Adds the variables of a policy, each of which may read those before it. */
function withVariables(scope: Scope, variables: readonly Variable[]): Scope {
  const known = new Map<string, Value>();
  const read = (key: string): Value => {
    const value = known.get(key);
    return value === undefined ? UNKNOWN : value;
  };
  const extended: Scope = new Map<string, Value>([...scope, ['variables', read]]);
  for (const { name, expression } of variables) {
    const value = parse(expression)?.(extended);
    if (value !== undefined) known.set(name, value);
  }
  return extended;
}

/** Returns the fields of an object; those that are not among `entries` are not known. */
function partial(entries: Readonly<Record<string, Value>>, otherwise: Value = UNKNOWN): Fields {
  const known = new Map(Object.entries(entries));
  return (key) => known.get(key) ?? otherwise;
}

function complete(entries: Readonly<Record<string, Value>>): Fields {
  return partial(entries, ABSENT);
}

/** Returns the text; the API server leaves an empty one out. */
function orAbsent(text: string): Value {
  return text === '' ? ABSENT : text;
}

/** Returns the fields of a map of texts, if it is known; the API server stores no empty maps. */
function strings(entries: Readonly<Record<string, string>> | undefined): Value {
  if (entries === undefined) return UNKNOWN;
  return Object.keys(entries).length === 0 ? ABSENT : complete(entries);
}

type Expression = (scope: Scope) => Value;

/** Limits for the length and the depth of an expression, which is untrusted text from the cluster. */
const MAX_LENGTH = 10_000;
const MAX_DEPTH = 100;

/** A text without escapes, a sign, or a name. */
const TOKEN = /\s*(?:$|("[^"\\\n]*"|'[^'\\\n]*'|in\b|&&|\|\||[=!]=|[!?.,()[\]{}]|[A-Za-z_]\w*))/y;

const isText = (token: string): boolean => /^["']/.test(token);
const isName = (token: string): boolean => /^(?!in$)\w/.test(token);

/** Thrown inside `parse` only. */
class UnsupportedSyntax extends Error {}

function parse(expression: string): Expression | undefined {
  try {
    return parseTokens(tokensOf(expression));
  } catch {
    return undefined;
  }
}

function tokensOf(expression: string): string[] {
  if (expression.length > MAX_LENGTH) throw new UnsupportedSyntax();
  const tokens: string[] = [];
  for (let end = 0; end < expression.length; end = TOKEN.lastIndex) {
    TOKEN.lastIndex = end;
    const found = TOKEN.exec(expression);
    if (found === null) throw new UnsupportedSyntax();
    tokens.push(found[1] ?? END);
  }
  return tokens;
}

/** In place of a token at the end of an expression. */
const END = '';

/** Parses the tokens by recursive descent (grammar: https://github.com/google/cel-spec/blob/master/doc/langdef.md). */
function parseTokens(tokens: readonly string[]): Expression {
  let position = 0;
  let depth = 0;
  const isNext = (...signs: string[]): boolean => signs.includes(tokens[position] ?? END);
  const accept = (...signs: string[]): string | undefined =>
    isNext(...signs) ? tokens[position++] : undefined;
  const read = (isWanted: (token: string) => boolean): string => {
    const token = tokens[position++] ?? END;
    if (!isWanted(token)) throw new UnsupportedSyntax();
    return token;
  };
  const expect = (sign: string): string => read((token) => token === sign);
  const whole = (): Expression => chain('||', () => chain('&&', relation, false), true);

  /** `||` is true and `&&` is false if one operand is, whatever the others are. */
  function chain(sign: string, operand: () => Expression, deciding: boolean): Expression {
    const operands = [operand()];
    while (accept(sign) !== undefined) operands.push(operand());
    const [first] = operands as [Expression];
    const values = (scope: Scope): Value[] => operands.map((one) => one(scope));
    return operands.length === 1 ? first : (scope) => combine(values(scope), deciding);
  }

  function relation(): Expression {
    const left = unary();
    const sign = accept('==', '!=', 'in');
    if (sign === undefined) return left;
    const right = unary();
    return (scope) => compare(sign, left(scope), right(scope));
  }

  function unary(): Expression {
    if (++depth > MAX_DEPTH) throw new UnsupportedSyntax();
    const isNegated = accept('!') !== undefined;
    const operand = isNegated ? unary() : member();
    depth--;
    return isNegated ? (scope) => negate(operand(scope)) : operand;
  }

  function member(): Expression {
    let target = primary();
    let isOptional = false;
    for (;;) {
      const sign = accept('.', '[');
      if (sign === undefined) return target;
      // After an optional field, the rest of the path is optional (CEL, optional types).
      isOptional = accept('?') !== undefined || isOptional;
      if (sign === '[') {
        target = field(target, whole(), isOptional);
        expect(']');
      } else {
        const key = read(isName);
        target =
          accept('(') === undefined ? field(target, () => key, isOptional) : method(target, key);
      }
    }
  }

  function method(target: Expression, called: string): Expression {
    if (called !== 'exists' && called !== 'all') {
      const [parameter] = list(')');
      return (scope) => call(called, target(scope), parameter?.(scope));
    }
    const variable = read(isName);
    expect(',');
    const predicate = whole();
    expect(')');
    return (scope) => {
      const items = target(scope);
      if (!Array.isArray(items)) return UNKNOWN;
      const results = items.map((item) => predicate(new Map([...scope, [variable, item]])));
      return combine(results, called === 'exists');
    };
  }

  function list(closing: string): Expression[] {
    const items: Expression[] = [];
    while (!isNext(closing)) {
      items.push(whole());
      if (accept(',') === undefined) break;
    }
    expect(closing);
    return items;
  }

  function primary(): Expression {
    switch (accept('(', '[', '{')) {
      case '(': {
        const inner = whole();
        expect(')');
        return inner;
      }
      case '[': {
        const items = list(']');
        return (scope) => items.map((one) => one(scope));
      }
      case '{':
        expect('}');
        return () => complete({});
      default:
        return word();
    }
  }

  /** Reads a text, a call of a function, or a variable. */
  function word(): Expression {
    const token = read((one) => isText(one) || isName(one));
    if (isText(token)) return () => token.slice(1, -1);
    if (accept('(') !== undefined) {
      const [parameter] = list(')');
      return (scope) => (token === 'has' ? isPresent(parameter?.(scope)) : UNKNOWN);
    }
    return (scope) => {
      const value = scope.get(token);
      return value === undefined ? UNKNOWN : value;
    };
  }

  const all = whole();
  expect(END);
  return all;
}

function combine(values: readonly Value[], deciding: boolean): Value {
  if (values.includes(deciding)) return deciding;
  return values.every((value) => value === !deciding) ? !deciding : UNKNOWN;
}

function negate(value: Value): Value {
  return typeof value === 'boolean' ? !value : UNKNOWN;
}

function isPresent(value: Value = UNKNOWN): Value {
  return value === UNKNOWN ? UNKNOWN : value !== ABSENT;
}

function field(target: Expression, key: Expression, isOptional: boolean): Expression {
  return (scope) => {
    const value = target(scope);
    const wanted = key(scope);
    if (typeof value === 'function' && typeof wanted === 'string') return value(wanted);
    return isOptional && value === ABSENT ? ABSENT : UNKNOWN;
  };
}

function compare(sign: string, a: Value, b: Value): Value {
  if (sign !== 'in') return sign === '==' ? isEqual(a, b) : negate(isEqual(a, b));
  if (typeof b === 'function') return typeof a === 'string' ? isPresent(b(a)) : UNKNOWN;
  if (!Array.isArray(b)) return UNKNOWN;
  const results = b.map((item) => isEqual(a, item));
  return combine(results, true);
}

function isEqual(a: Value, b: Value): Value {
  return isComparable(a) && isComparable(b) ? a === b : UNKNOWN;
}

function isComparable(value: Value): boolean {
  return value === null || value === UNNAMED || /^(?:string|boolean)$/.test(typeof value);
}

function call(name: string, target: Value, parameter: Value = UNKNOWN): Value {
  if (name === 'orValue') return target === ABSENT ? parameter : target;
  if (typeof target !== 'string' || typeof parameter !== 'string') return UNKNOWN;
  switch (name) {
    case 'startsWith':
      return target.startsWith(parameter);
    case 'endsWith':
      return target.endsWith(parameter);
    case 'contains':
      return target.includes(parameter);
    default:
      return UNKNOWN;
  }
}
