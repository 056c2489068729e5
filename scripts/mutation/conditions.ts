import { stripTypeScriptTypes } from 'node:module';
import { type Node, parse } from 'acorn';
import { ancestor } from 'acorn-walk';
import MagicString from 'magic-string';

/** A condition of the code that can be switched off while the program runs. */
export interface Condition {
  id: number;
  file: string;
  line: number;
  /** The function that it stands in. */
  inside: string;
  kind: 'operand' | 'if';
  text: string;
}

/** Fields of the syntax nodes that are read here (ESTree). */
interface Syntax extends Node {
  operator?: string;
  left?: Syntax;
  right?: Syntax;
  test?: Syntax;
  id?: { name: string } | null;
  key?: { name?: string };
}

/** The name under which instrumented code asks whether a condition is switched off. */
const SWITCH = '__isSwitchedOff';
/** The name under which instrumented code reports the value of a condition. */
const OBSERVE = '__observed';

/**
 * Rewrites TypeScript so that each operand of `&&` and `||`, and each `if`, can be switched off at run time by its
 * number. A condition that is off does not count: an operand takes the value that leaves the others to decide, the
 * statement of an `if` is never executed.
 *
 * Comparisons with `undefined` are left alone: the compiler demands most of them, so they decide nothing by themselves.
 */
export function instrument(
  source: string,
  file: string,
  firstId: number,
): { code: string; conditions: Condition[] } {
  const script = stripTypeScriptTypes(source);
  const code = new MagicString(script);
  const conditions: Condition[] = [];
  const lineOf = (offset: number): number => script.slice(0, offset).split('\n').length;

  function wrap(node: Syntax, kind: Condition['kind'], neutral: boolean, path: Syntax[]): void {
    const text = script.slice(node.start, node.end);
    if (/[!=]== undefined$/.test(text)) return;
    const id = firstId + conditions.length;
    conditions.push({
      id,
      file,
      line: lineOf(node.start),
      inside: functionName(path),
      kind,
      text: text.replace(/\s+/g, ' '),
    });
    code.prependRight(
      node.start,
      `(${SWITCH}(${id}) ? ${neutral} : ${OBSERVE}(${id}, ${neutral}, `,
    );
    code.appendLeft(node.end, '))');
  }

  ancestor(parse(script, { ecmaVersion: 'latest', sourceType: 'module' }), {
    LogicalExpression(node, _, path) {
      const { operator, left, right } = node as Syntax;
      if (operator === '??' || left === undefined || right === undefined) return;
      // A chain `a && b && c` is nested to the left; its inner nodes are no operands of their own.
      if (left.type !== node.type || left.operator !== operator) {
        wrap(left, 'operand', operator === '&&', path as Syntax[]);
      }
      wrap(right, 'operand', operator === '&&', path as Syntax[]);
    },
    IfStatement(node, _, path) {
      const { test } = node as Syntax;
      if (test !== undefined) wrap(test, 'if', false, path as Syntax[]);
    },
  });
  return { code: code.toString(), conditions };
}

function functionName(path: readonly Syntax[]): string {
  const named = path.findLast(
    ({ type, id }) => /^(?:Function|VariableDeclarator|ClassDeclaration)/.test(type) && id,
  );
  return named?.id?.name ?? '(top level)';
}

/** What instrumented code that runs in this process does with its conditions. */
export const switches = {
  /** The condition that is switched off. */
  off: -1,
  /** The conditions that were reached since the last reset. */
  reached: new Set<number>(),
  /** Those among them with another value than when they are off: only these can change anything. */
  decisive: new Set<number>(),
  /** How many more conditions may be evaluated: without one of its conditions, a loop may never end. */
  budget: Number.POSITIVE_INFINITY,
};

/** Makes the switch known to instrumented code. It throws when the budget is used up. */
export function installSwitch(): void {
  Object.assign(globalThis, {
    [SWITCH]: (id: number): boolean => {
      if (switches.budget-- <= 0) throw new Error('endless loop');
      switches.reached.add(id);
      return id === switches.off;
    },
    [OBSERVE]: <T>(id: number, neutral: boolean, value: T): T => {
      if (value !== neutral) switches.decisive.add(id);
      return value;
    },
  });
}
