import type { ObjectFacts, ResourceType } from '../model/snapshot.ts';

/**
 * Evaluates the part of CEL in which match conditions are usually written: comparisons, `in`, `has()`, string
 * functions, `exists`, `all`, optional fields. Everything else, and every CEL error, is unknown, as in
 * https://kubernetes.io/docs/reference/using-api/cel/.
 */

/** A value that is not known here, or a CEL error. */
const UNKNOWN: unique symbol = Symbol('unknown');
/** The name of a user that no expression mentions. */
const UNNAMED_USER = Symbol('a user whom the expression does not name');
/** An optional field that the object does not have. */
const ABSENT = Symbol('absent');

type Value =
  | string
  | number
  | boolean
  | null
  | typeof UNKNOWN
  | typeof UNNAMED_USER
  | typeof ABSENT
  | readonly Value[]
  | Fields;

/** Fields of an object. A key that is missing from `isComplete` fields is absent, otherwise unknown. */
class Fields {
  readonly entries: ReadonlyMap<string, Value>;
  readonly isComplete: boolean;
  constructor(entries: Readonly<Record<string, Value>>, isComplete: boolean) {
    this.entries = new Map(Object.entries(entries));
    this.isComplete = isComplete;
  }

  get(key: string): Value {
    const value = this.entries.get(key);
    return value === undefined || value === ABSENT ? UNKNOWN : value;
  }

  has(key: string): boolean | typeof UNKNOWN {
    if (this.entries.has(key)) return this.entries.get(key) !== ABSENT;
    return this.isComplete ? false : UNKNOWN;
  }
}

/** The user that sends a request, with all groups that its authenticator adds. */
export interface Requester {
  username: string;
  groups: readonly string[];
}

/** The known parts of a request to the admission chain. */
export interface AdmissionRequest {
  operation: 'CREATE' | 'UPDATE' | 'DELETE';
  type: ResourceType;
  object: Pick<ObjectFacts, 'name' | 'namespace' | 'labels'> & {
    annotations?: Readonly<Record<string, string>>;
  };
  /** Labels of the object's namespace; undefined if they are not known. */
  namespaceLabels?: Readonly<Record<string, string>> | undefined;
  /** `unnamed`: some user whom no policy mentions by name. Undefined: not known at all. */
  requester: Requester | 'unnamed' | undefined;
}

/**
 * Evaluates one expression for a request.
 * @returns undefined if the result is not a boolean or depends on something that is not known
 */
export function evaluateCondition(
  expression: string,
  request: AdmissionRequest,
): boolean | undefined {
  const parsed = parse(expression);
  const value = parsed?.(environmentOf(request));
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
  const [resource = '', subResource = ''] = type.resource.split('/');
  const { group, version, kind } = type;
  const userInfo =
    requester === 'unnamed'
      ? partial({ username: UNNAMED_USER })
      : partial(requester === undefined ? {} : { ...requester });
  // Requests for a Namespace name it twice (apiserver, endpoints/request/requestinfo.go).
  const isNamespace = group === '' && resource === 'namespaces';
  const stored = partial({
    metadata: partial({
      name: object.name,
      namespace: object.namespace || ABSENT,
      labels: strings(object.labels),
      ...(object.annotations === undefined ? {} : { annotations: strings(object.annotations) }),
    }),
  });
  const namespaceMetadata = namespaceLabels && partial({ labels: strings(namespaceLabels) });
  return new Map<string, Value>([
    [
      'request',
      partial({
        namespace: isNamespace ? object.name : object.namespace,
        operation,
        userInfo,
        subResource,
        kind: complete({ group, version, kind }),
        resource: complete({ group, version, resource }),
        // A deletion of a collection has no name (apiserver, rest.AdmissionToValidateObjectDeleteFunc).
        ...(operation === 'DELETE' && type.namespaced ? {} : { name: object.name }),
      }),
    ],
    ['object', operation === 'DELETE' ? null : stored],
    ['oldObject', operation === 'CREATE' ? null : stored],
    ['namespaceObject', partial(namespaceMetadata ? { metadata: namespaceMetadata } : {})],
  ]);
}

function partial(entries: Readonly<Record<string, Value>>): Fields {
  return new Fields(entries, false);
}

function complete(entries: Readonly<Record<string, Value>>): Fields {
  return new Fields(entries, true);
}

/** Returns the fields of a map of texts; the API server stores no empty maps. */
function strings(entries: Readonly<Record<string, string>>): Fields | typeof ABSENT {
  return Object.keys(entries).length === 0 ? ABSENT : complete(entries);
}

type Expression = (scope: Scope) => Value;

/** Limits for the length and the depth of an expression, which is untrusted text from the cluster. */
const MAX_LENGTH = 10_000;
const MAX_DEPTH = 100;

const TOKEN =
  /(?:\s|\/\/[^\n]*\n)*(?:$|([rR]?"(?:[^"\\\n]|\\.)*"|[rR]?'(?:[^'\\\n]|\\.)*')|(\d+)(?![\w.])|([A-Za-z_]\w*)|(&&|\|\||[=!<>]=|[-+*/%<>!?:.,()[\]{}]))/y;

interface Token {
  kind: 'text' | 'number' | 'name' | 'sign' | 'end';
  text: string;
}

/** Thrown inside `parse` only. */
class UnsupportedSyntax extends Error {}

function parse(expression: string): Expression | undefined {
  try {
    return parseTokens(tokensOf(expression));
  } catch (error) {
    if (error instanceof UnsupportedSyntax) return undefined;
    throw error;
  }
}

function tokensOf(expression: string): Token[] {
  // The line break ends a comment.
  const text = `${expression}\n`;
  if (text.length > MAX_LENGTH) throw new UnsupportedSyntax();
  const tokens: Token[] = [];
  for (let end = 0; end < text.length; end = TOKEN.lastIndex) {
    TOKEN.lastIndex = end;
    const match = TOKEN.exec(text);
    if (match === null) throw new UnsupportedSyntax();
    const [, quoted, number, name, sign] = match;
    if (quoted !== undefined) tokens.push({ kind: 'text', text: unquote(quoted) });
    else if (number !== undefined) tokens.push({ kind: 'number', text: number });
    else if (name !== undefined) tokens.push({ kind: 'name', text: name });
    else if (sign !== undefined) tokens.push({ kind: 'sign', text: sign });
  }
  return tokens;
}

function unquote(quoted: string): string {
  const inner = quoted.replace(/^[rR]/, '').slice(1, -1);
  if (/^[rR]/.test(quoted) || !inner.includes('\\')) return inner;
  if (/\\[^"'\\]/.test(inner.replaceAll('\\\\', ''))) throw new UnsupportedSyntax();
  return inner.replace(/\\(.)/g, '$1');
}

/** Parses the tokens by recursive descent (grammar: https://github.com/google/cel-spec/blob/master/doc/langdef.md). */
function parseTokens(tokens: readonly Token[]): Expression {
  let position = 0;
  let depth = 0;
  const peek = (): Token => tokens[position] ?? { kind: 'end', text: '' };
  const isNext = (...signs: string[]): boolean => {
    const { kind, text } = peek();
    return (kind === 'sign' || text === 'in') && kind !== 'text' && signs.includes(text);
  };
  const accept = (...signs: string[]): string | undefined =>
    isNext(...signs) ? tokens[position++]?.text : undefined;
  const expect = (sign: string): void => {
    if (accept(sign) === undefined) throw new UnsupportedSyntax();
  };
  const name = (): string => {
    const token = peek();
    if (token.kind !== 'name') throw new UnsupportedSyntax();
    position++;
    return token.text;
  };

  function conditional(): Expression {
    if (++depth > MAX_DEPTH) throw new UnsupportedSyntax();
    const condition = chain('||', () => chain('&&', relation, false), true);
    depth--;
    if (accept('?') === undefined) return condition;
    const yes = conditional();
    expect(':');
    const no = conditional();
    return (scope) => {
      const value = condition(scope);
      return typeof value === 'boolean' ? (value ? yes : no)(scope) : UNKNOWN;
    };
  }

  /** `||` is true and `&&` is false if one operand is, whatever the others are. */
  function chain(sign: string, operand: () => Expression, deciding: boolean): Expression {
    const operands = [operand()];
    while (accept(sign) !== undefined) operands.push(operand());
    return operands.length === 1
      ? (operands[0] as Expression)
      : (scope) =>
          combine(
            operands.map((one) => one(scope)),
            deciding,
          );
  }

  function relation(): Expression {
    let left = sum();
    for (;;) {
      const sign = accept('==', '!=', '<', '<=', '>', '>=', 'in');
      if (sign === undefined) return left;
      const [a, b] = [left, sum()];
      left = (scope) => compare(sign, a(scope), b(scope));
    }
  }

  /** Arithmetic is read, and its result is unknown. */
  function sum(): Expression {
    const first = unary();
    if (!isNext('+', '-', '*', '/', '%')) return first;
    while (accept('+', '-', '*', '/', '%') !== undefined) unary();
    return () => UNKNOWN;
  }

  function unary(): Expression {
    if (++depth > MAX_DEPTH) throw new UnsupportedSyntax();
    const sign = accept('!', '-');
    const operand = sign === undefined ? member() : unary();
    depth--;
    if (sign === undefined) return operand;
    return (scope) => {
      const value = operand(scope);
      return sign === '!' && typeof value === 'boolean' ? !value : UNKNOWN;
    };
  }

  function member(): Expression {
    let target = primary();
    for (;;) {
      if (accept('.') !== undefined) {
        const isOptional = accept('?') !== undefined;
        const key = name();
        target = isNext('(') ? method(target, key) : field(target, () => key, isOptional);
      } else if (accept('[') !== undefined) {
        const isOptional = accept('?') !== undefined;
        const key = conditional();
        expect(']');
        target = field(target, key, isOptional);
      } else return target;
    }
  }

  function method(target: Expression, called: string): Expression {
    expect('(');
    if (called === 'exists' || called === 'all') {
      const variable = name();
      expect(',');
      const predicate = conditional();
      expect(')');
      return (scope) => {
        const items = itemsOf(target(scope));
        if (items === undefined) return UNKNOWN;
        const results = items.map((item) => predicate(new Map([...scope, [variable, item]])));
        return combine(results, called === 'exists');
      };
    }
    const parameters = list(')');
    return (scope) =>
      call(
        called,
        target(scope),
        parameters.map((one) => one(scope)),
      );
  }

  function list(closing: string): Expression[] {
    const items: Expression[] = [];
    while (!isNext(closing)) {
      items.push(conditional());
      if (accept(',') === undefined) break;
    }
    expect(closing);
    return items;
  }

  function primary(): Expression {
    if (accept('(') !== undefined) {
      const inner = conditional();
      expect(')');
      return inner;
    }
    if (accept('[') !== undefined) {
      const items = list(']');
      return (scope) => items.map((one) => one(scope));
    }
    if (accept('{') !== undefined) {
      expect('}');
      return () => complete({});
    }
    const { kind, text } = peek();
    if (kind === 'text' || kind === 'number') {
      position++;
      return () => (kind === 'text' ? text : Number(text));
    }
    name();
    if (LITERALS.has(text)) return () => LITERALS.get(text) ?? null;
    if (!isNext('(')) return (scope) => scope.get(text) ?? (scope.has(text) ? null : UNKNOWN);
    if (text === 'has') return presence();
    accept('(');
    list(')');
    return () => UNKNOWN;
  }

  /** `has(a.b)` reads `a.b` as an optional field. */
  function presence(): Expression {
    expect('(');
    const { key, of } = member() as Partial<FieldExpression>;
    expect(')');
    if (key === undefined || of === undefined) throw new UnsupportedSyntax();
    return (scope) => {
      const [value, name] = [of(scope), key(scope)];
      return value instanceof Fields && typeof name === 'string' ? value.has(name) : UNKNOWN;
    };
  }

  const whole = conditional();
  if (peek().kind !== 'end') throw new UnsupportedSyntax();
  return whole;
}

const LITERALS: ReadonlyMap<string, Value> = new Map<string, Value>([
  ['true', true],
  ['false', false],
  ['null', null],
]);

function combine(values: readonly Value[], deciding: boolean): Value {
  if (values.includes(deciding)) return deciding;
  return values.every((value) => value === !deciding) ? !deciding : UNKNOWN;
}

type FieldExpression = Expression & { of: Expression; key: Expression };

function field(of: Expression, key: Expression, isOptional: boolean): FieldExpression {
  const read: Expression = (scope) => {
    const value = of(scope);
    const wanted = key(scope);
    // After an optional field, the rest of the path is optional (CEL, optional types).
    if (value === ABSENT) return ABSENT;
    if (!(value instanceof Fields) || typeof wanted !== 'string') return UNKNOWN;
    return isOptional && value.has(wanted) === false ? ABSENT : value.get(wanted);
  };
  return Object.assign(read, { of, key });
}

function itemsOf(value: Value): readonly Value[] | undefined {
  if (value instanceof Fields) return value.isComplete ? [...value.entries.keys()] : undefined;
  return Array.isArray(value) ? value : undefined;
}

function compare(sign: string, a: Value, b: Value): Value {
  if (sign === '==') return isEqual(a, b);
  if (sign === '!=') {
    const equal = isEqual(a, b);
    return typeof equal === 'boolean' ? !equal : UNKNOWN;
  }
  if (sign === 'in' && b instanceof Fields && typeof a === 'string') return b.has(a);
  if (sign !== 'in' || !Array.isArray(b)) return UNKNOWN;
  const found = b.map((item) => isEqual(a, item));
  return combine(found, true);
}

function isEqual(a: Value, b: Value): Value {
  const values = [a, b];
  if (values.includes(UNKNOWN) || values.includes(ABSENT)) return UNKNOWN;
  if (a === null || b === null) return a === b;
  if (typeof a === 'object' || typeof b === 'object') return UNKNOWN;
  return a === b;
}

function call(name: string, target: Value, parameters: readonly Value[]): Value {
  const [parameter] = parameters;
  if (name === 'orValue' && parameter !== undefined) return target === ABSENT ? parameter : target;
  if (typeof target !== 'string' || typeof parameter !== 'string') return UNKNOWN;
  if (name === 'startsWith') return target.startsWith(parameter);
  if (name === 'endsWith') return target.endsWith(parameter);
  return name === 'contains' ? target.includes(parameter) : UNKNOWN;
}
