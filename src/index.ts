#!/usr/bin/env node
import './require-node.ts';
import './github/damaged-environment.ts';
import { runAction } from './action.ts';
import { runTerminal } from './terminal.ts';

/**
 * The process. Without arguments the Actions runner has started it, with arguments a person has. Only
 * the exit code is set: process.exit would hide what keeps the process alive, and cut off what is
 * being written.
 */
const args = process.argv.slice(2);
process.exitCode = args.length > 0 ? await runTerminal(args) : await runAction();
