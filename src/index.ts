#!/usr/bin/env node
import './require-node.ts';
import { describeInternalError } from './base/errors.ts';

/**
 * Entry point of the process. A runner starts it without arguments and passes the inputs as INPUT_… variables; a
 * person starts it with arguments. Only the exit code is set: process.exit would hide what keeps the process
 * alive, and cut off output.
 */
const args = process.argv.slice(2);
process.on('uncaughtException', endWithInternalError);
process.exitCode = args.length === 0 && isInRunner() ? await inAction() : await inTerminal();

/**
 * Ends the process after an error that nothing caught, also after a rejected promise. Node would print the
 * message, which may quote a secret.
 */
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

/** Runs the terminal, and imports only that part. "eager" keeps it in the bundle: ncc does not minify a second file. */
async function inTerminal(): Promise<number> {
  const { runTerminal } = await import(/* webpackMode: "eager" */ './cli.ts');
  return runTerminal(args);
}

async function inAction(): Promise<number> {
  const { runAction } = await import(/* webpackMode: "eager" */ './action.ts');
  return runAction();
}
