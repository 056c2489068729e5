#!/usr/bin/env node
import './require-node.ts';
import { describeInternalError } from './base/errors.ts';

// A runner starts it without arguments and passes the inputs as INPUT_… variables; a person starts it with arguments.
// Only the exit code is set: process.exit would hide what keeps the process alive, and cut off output.
const args = process.argv.slice(2);
const isAction = args.length === 0 && isInRunner();
process.on('uncaughtException', endWithInternalError);
// Each face is imported only where it is used. "eager" keeps it in the bundle: ncc does not minify a second file.
process.exitCode = isAction
  ? await (await import(/* webpackMode: "eager" */ './action.ts')).runAction()
  : await (await import(/* webpackMode: "eager" */ './cli.ts')).runTerminal(args);

/** Also after a rejected promise. Node would print the message, which may quote a secret. */
function endWithInternalError(error: unknown): never {
  const { message } = describeInternalError(error);
  if (isAction) process.stdout.write(`::error::${message}\n`);
  else process.stderr.write(`error: ${message}\n`);
  process.exit(isAction ? 1 : 2);
}

function isInRunner(): boolean {
  const { env } = process;
  return (
    env['GITHUB_ACTIONS'] === 'true' || Object.keys(env).some((name) => name.startsWith('INPUT_'))
  );
}
