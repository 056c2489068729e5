#!/usr/bin/env node
import './require-node.ts';

/**
 * The process. Without arguments the Actions runner has started it, with arguments a person has. Only
 * the exit code is set: process.exit would hide what keeps the process alive, and cut off what is
 * being written.
 */
const args = process.argv.slice(2);
process.exitCode = args.length > 0 ? await inTerminal() : await inAction();

/** Each loads only its own half. "eager" keeps it in the one file: ncc does not minify a second one. */
async function inTerminal(): Promise<number> {
  const { runTerminal } = await import(/* webpackMode: "eager" */ './terminal.ts');
  return runTerminal(args);
}

async function inAction(): Promise<number> {
  const { runAction } = await import(/* webpackMode: "eager" */ './action.ts');
  return runAction();
}
