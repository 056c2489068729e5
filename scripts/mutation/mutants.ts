import { stripTypeScriptTypes } from 'node:module';
import { type Node, parse } from 'acorn';
import { full } from 'acorn-walk';

/** One small fault: what stands between two offsets of a file is replaced. */
export interface Mutant {
  file: string;
  line: number;
  start: number;
  end: number;
  original: string;
  replacement: string;
}

/** Fields of the syntax nodes that are read here (ESTree). */
interface Syntax extends Node {
  operator?: string;
  left?: Syntax;
  right?: Syntax;
  argument?: Syntax;
  test?: Syntax;
  value?: unknown;
  expression?: Syntax;
  property?: Syntax;
}

const SWAPPED: Record<string, string> = {
  '&&': '||',
  '||': '&&',
  '??': '&&',
  '===': '!==',
  '!==': '===',
  '<': '>=',
  '<=': '>',
  '>': '<=',
  '>=': '<',
  '+': '-',
  '-': '+',
  '*': '/',
};

const SWAPPED_CALLS: Record<string, string> = { some: 'every', every: 'some', filter: 'map' };

/** Returns every fault that is tried in a TypeScript file; sentences are left alone. */
export function mutantsIn(source: string, file: string): Mutant[] {
  const script = stripTypeScriptTypes(source);
  const mutants: Mutant[] = [];
  function replace({ start, end }: { start: number; end: number }, replacement: string): void {
    const line = script.slice(0, start).split('\n').length;
    mutants.push({ file, line, start, end, original: script.slice(start, end), replacement });
  }

  full(parse(script, { ecmaVersion: 'latest', sourceType: 'module' }), (node) => {
    const { type, operator, left, right, argument, test, value, expression, property } =
      node as Syntax;
    if (type === 'LogicalExpression' || type === 'BinaryExpression') {
      const swapped = SWAPPED[operator ?? ''];
      if (swapped === undefined || left === undefined || right === undefined) return;
      if (operator === '+' && script.slice(left.end - 1, left.end).match(/['"`]/)) return;
      const gap = { start: left.end, end: right.start };
      const between = script.slice(gap.start, gap.end);
      replace(gap, between.replace(operator ?? '', swapped));
    } else if (type === 'UnaryExpression' && operator === '!' && argument !== undefined) {
      replace({ start: node.start, end: argument.start }, '');
    } else if ((type === 'IfStatement' || type === 'ConditionalExpression') && test) {
      replace(test, 'false');
    } else if (type === 'Literal' && typeof value === 'boolean') {
      replace(node, String(!value));
    } else if (type === 'ExpressionStatement' && /^(?:Call|Await)/.test(expression?.type ?? '')) {
      replace(node, ';');
    } else if (type === 'MemberExpression' && property) {
      const swapped = SWAPPED_CALLS[script.slice(property.start, property.end)];
      if (swapped !== undefined) replace(property, swapped);
    }
  });
  return mutants;
}
