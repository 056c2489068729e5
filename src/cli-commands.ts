import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type Command, EXIT_CODES } from './arguments.ts';
import { ActionError, describeError } from './base/errors.ts';
import type { Log } from './base/log.ts';
import { onCancel, writeOutput } from './base/process.ts';
import type { Redactor } from './base/redact.ts';
import { logLines } from './base/text.ts';
import { runInCluster } from './in-cluster.ts';
import { readInputs } from './inputs.ts';
import type { RunResult } from './model/result.ts';
import { REPORT_FILES } from './report/files.ts';
import { renderMarkdownReport } from './report/markdown.ts';
import { renderText } from './report/plain-text.ts';
import { reportJson } from './report/report-json.ts';
import type { View } from './report/view.ts';

type GateCommand = Extract<Command, { run: 'gate' }>;

export async function runGateCommand(
  command: GateCommand,
  redactor: Redactor,
  log: Log,
): Promise<number> {
  const given = readInputs(command.inputs);
  const inputs = command.now ? { ...given, timeoutMs: 0 } : given;
  const { signal, dispose } = onCancel();
  try {
    return await runInCluster(inputs, { redactor, log, signal }, async (view) => {
      await writeOutput(RENDERERS[command.format](view));
      if (inputs.reportDir !== '') await writeReports(view, inputs.reportDir);
      return exitCode(view.run);
    });
  } finally {
    dispose();
  }
}

/** In a step of a workflow the runner reads standard output for commands. */
const RENDERERS: Record<GateCommand['format'], (view: View) => string> = {
  text: (view) => logLines(renderText(view)),
  markdown: (view) => logLines(renderMarkdownReport(view, {})),
  json: reportJson,
};

async function writeReports(view: View, folder: string): Promise<void> {
  try {
    await mkdir(folder, { recursive: true });
    for (const [name, renderFile] of REPORT_FILES)
      await writeFile(join(folder, name), renderFile(view, {}));
  } catch (error) {
    throw new ActionError(
      `cannot write the reports to "${folder}": ${describeError(error)}`,
      'Give another folder as --report-dir; the report itself was printed.',
    );
  }
}

function exitCode({ verdict, outcome }: RunResult): number {
  if (verdict !== 'fail') return EXIT_CODES.passed;
  return outcome === 'inconclusive' ? EXIT_CODES.couldNotTell : EXIT_CODES.failed;
}
