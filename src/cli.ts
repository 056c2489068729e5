import { type Command, EXIT_CODES, HELP, parseArguments } from './arguments.ts';
import { describeFailure, InputError } from './base/errors.ts';
import { createTerminalLog, type Log } from './base/log.ts';
import { writeOutput } from './base/process.ts';
import { createRedactor, type Redactor } from './base/redact.ts';
import { GATE_VERSION } from './version.ts';

/** Runs the program in a terminal: progress on standard error, the report on standard output. */
export async function runTerminal(args: readonly string[]): Promise<number> {
  // An error of standard error cannot be reported anywhere.
  process.stderr.on('error', () => {});
  const redactor = createRedactor();
  const log = createTerminalLog(redactor);
  try {
    return await run(parseArguments(args), redactor, log);
  } catch (error) {
    const { message, hint, frames } = describeFailure(error);
    log.error(message);
    if (hint !== undefined) log.line(hint);
    for (const frame of frames) log.debug(frame);
    return error instanceof InputError ? EXIT_CODES.usage : EXIT_CODES.couldNotTell;
  }
}

async function run(command: Command, redactor: Redactor, log: Log): Promise<number> {
  switch (command.run) {
    case 'help':
      if (command.isMistake) {
        process.stderr.write(HELP);
        return EXIT_CODES.usage;
      }
      await writeOutput(HELP);
      return EXIT_CODES.passed;
    case 'version':
      await writeOutput(`${GATE_VERSION}\n`);
      return EXIT_CODES.passed;
    case 'gate': {
      // The help does not need a Kubernetes client, so it is imported here. "eager" keeps it in the same bundle.
      const { runGateCommand } = await import(/* webpackMode: "eager" */ './cli-commands.ts');
      return runGateCommand(command, redactor, log);
    }
  }
}
