import { expect, test } from 'vitest';
import { HELP, parseArguments } from '../../src/arguments.ts';
import { InputError } from '../../src/base/errors.ts';
import { readInputs } from '../../src/inputs.ts';
import { expectPairs } from '../stub/pairs.ts';

test('arguments are parsed into a command, or refused with one sentence', () =>
  expectPairs('arguments.txt', (line) => {
    try {
      return parseArguments(JSON.parse(line));
    } catch (error) {
      const { message, hint } = error as InputError;
      expect(error).toBeInstanceOf(InputError);
      expect([message.includes('\n'), hint?.includes('--help')]).toEqual([false, true]);
      return message;
    }
  }));

test('an empty argument is not a namespace name', () => {
  const command = parseArguments(['']);
  expect(() => readInputs(command.run === 'gate' ? command.inputs : {})).toThrow('both empty');
});

test('the help fits 80 columns', () => {
  const widths = HELP.split('\n').map((line) => Array.from(line).length);
  expect(Math.max(...widths)).toBeLessThanOrEqual(80);
});
