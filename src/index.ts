#!/usr/bin/env node
import './require-node.ts';
import { describeInternalError } from './base/errors.ts';

/**
 * The process. A runner starts it without arguments, and hands over the inputs as INPUT_… variables; a
 * person starts it otherwise. Only the exit code is set: process.exit would hide what keeps the
 * process alive, and cut off what is being written.
 */
const args = process.argv.slice(2);
process.on('uncaughtException', endWithInternalError);
process.exitCode = args.length === 0 && isInRunner() ? await inAction() : await inTerminal();

/** Node would print the stack and the message, which may quote a secret. Rejected promises end here as well. */
function endWithInternalError(error: unknown): never {
  const { message } = describeInternalError(error);
  const isAction = args.length === 0 && isInRunner();
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

/** Each loads only its own half. "eager" keeps it in the one file: ncc does not minify a second one. */
async function inTerminal(): Promise<number> {
  const { runTerminal } = await import(/* webpackMode: "eager" */ './cli.ts');
  return runTerminal(args);
}

async function inAction(): Promise<number> {
  const { runAction } = await import(/* webpackMode: "eager" */ './action.ts');
  return runAction();
}
