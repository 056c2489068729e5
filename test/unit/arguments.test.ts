import { expect, test } from 'vitest';
import { parseArguments } from '../../src/arguments.ts';
import { ActionError } from '../../src/base/errors.ts';
import { readInputs } from '../../src/inputs.ts';
import { expectPairs } from '../stub/pairs.ts';

test('arguments are a command, or are refused with one sentence', () =>
  expectPairs('arguments.txt', (line) => {
    try {
      return parseArguments(JSON.parse(line));
    } catch (error) {
      const { code, message, hint } = error as ActionError;
      expect(error).toBeInstanceOf(ActionError);
      expect([code, message.includes('\n'), hint?.includes('--help')]).toEqual([
        'invalid-input',
        false,
        true,
      ]);
      return message;
    }
  }));

test('an empty word in the place of a name is no name', () => {
  const command = parseArguments(['']);
  expect(() => readInputs(command.run === 'gate' ? command.inputs : {})).toThrow('both empty');
});
