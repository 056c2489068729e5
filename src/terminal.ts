import { readFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type Command, HELP, parseArguments } from './arguments.ts';
import { onCancel } from './cancel.ts';
import { systemClock } from './clock.ts';
import { ActionError, describeError } from './errors.ts';
import { runGate } from './gate.ts';
import { homeDirectory } from './home-dir.ts';
import { type Inputs, readInputs } from './inputs.ts';
import { connect } from './kubernetes/connect.ts';
import type { Log } from './log.ts';
import { makeFolder } from './make-folder.ts';
import { createRedactor, type Redactor } from './redact.ts';
import { buildReport } from './report/json.ts';
import { type RenderContext, renderMarkdownReport } from './report/markdown.ts';
import { redactResult } from './report/redacted.ts';
import type { Report, RunResult } from './report/report.ts';
import { renderStatistics, summarizeReports } from './report/statistics.ts';
import { renderText } from './report/text.ts';
import { createTerminalLog } from './terminal-log.ts';
import { GATE_VERSION } from './version.ts';

const EXIT = { passed: 0, failed: 1, couldNotTell: 2, usage: 3 } as const;

/** The gate for a person: progress on standard error, the report on standard output. */
export async function runTerminal(args: readonly string[]): Promise<number> {
  const redactor = createRedactor();
  const log = createTerminalLog({
    redactor,
    write: (text) => process.stderr.write(text),
    colour: process.stderr.isTTY === true && !process.env['NO_COLOR'],
    debug: process.env['RUNNER_DEBUG'] === '1' || Boolean(process.env['DEBUG']),
  });
  try {
    return await run(parseArguments(args), redactor, log);
  } catch (error) {
    const isKnown = error instanceof ActionError;
    log.error(isKnown ? error.message : `internal error: ${describeError(error)}`);
    if (isKnown && error.hint !== undefined) log.line(error.hint);
    if (!isKnown && error instanceof Error) log.debug(error.stack ?? '');
    return isKnown && error.code === 'invalid-input' ? EXIT.usage : EXIT.couldNotTell;
  }
}

async function run(command: Command, redactor: Redactor, log: Log): Promise<number> {
  switch (command.run) {
    case 'help':
      process.stdout.write(HELP);
      return EXIT.passed;
    case 'version':
      process.stdout.write(`${GATE_VERSION}\n`);
      return EXIT.passed;
    case 'stats': {
      const statistics = summarizeReports(command.files.map(readReport));
      process.stdout.write(renderStatistics(statistics, command.format));
      return EXIT.passed;
    }
    case 'gate':
      return gate(command, redactor, log);
  }
}

async function gate(
  command: Extract<Command, { run: 'gate' }>,
  redactor: Redactor,
  log: Log,
): Promise<number> {
  const given = readInputs((name) => command.inputs[name] ?? '');
  const inputs: Inputs = command.now ? { ...given, timeoutMs: 0 } : given;
  const cancellation = onCancel();
  try {
    const api = await connect({
      kubeconfig: inputs.kubeconfig,
      context: inputs.context,
      env: process.env,
      redactor,
      debug: log.debug,
      userAgent: `namespace-teardown-gate/${GATE_VERSION}`,
      homeDir: homeDirectory(),
      signal: cancellation.signal,
    });
    try {
      const { signal } = cancellation;
      const deps = { api, clock: systemClock, log, signal, gateVersion: GATE_VERSION };
      const result = redactResult(await runGate(inputs, deps), (text) => redactor.redact(text));
      process.stdout.write(render(result, command.format));
      if (inputs.reportDir !== '') await writeReports(result, inputs.reportDir);
      return exitCode(result);
    } finally {
      await api.close();
    }
  } finally {
    cancellation.dispose();
  }
}

function render(result: RunResult, format: Extract<Command, { run: 'gate' }>['format']): string {
  switch (format) {
    case 'text':
      return renderText(result);
    case 'markdown':
      return renderMarkdownReport(result, context(result));
    case 'json':
      return `${JSON.stringify(buildReport(result), null, 2)}\n`;
  }
}

async function writeReports(result: RunResult, folder: string): Promise<void> {
  try {
    await makeFolder(folder);
    await writeFile(join(folder, 'report.json'), render(result, 'json'));
    await writeFile(join(folder, 'report.md'), render(result, 'markdown'));
  } catch (error) {
    throw new ActionError(
      'internal',
      `cannot write the reports to "${folder}": ${describeError(error)}`,
      { hint: 'Give another folder as --report-dir; the report itself was printed.' },
    );
  }
}

function context(result: RunResult): RenderContext {
  return { finishedAt: result.finishedAt };
}

function exitCode({ verdict, outcome }: RunResult): number {
  if (verdict !== 'fail') return EXIT.passed;
  return outcome === 'inconclusive' ? EXIT.couldNotTell : EXIT.failed;
}

function readReport(path: string): Report {
  let report: unknown;
  try {
    report = JSON.parse(readFileSync(path, 'utf8'));
  } catch (error) {
    throw new ActionError('invalid-input', `cannot read "${path}": ${describeError(error)}`);
  }
  const isReport =
    typeof report === 'object' &&
    report !== null &&
    'schemaVersion' in report &&
    report.schemaVersion === 1;
  if (!isReport) {
    throw new ActionError('invalid-input', `"${path}" is no report.json of this gate, version 1`);
  }
  return report as Report;
}
