import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Log } from '../../src/base/log.ts';
import { createRedactor } from '../../src/base/redact.ts';
import { systemClock } from '../../src/base/time.ts';
import { runGate } from '../../src/gate/gate.ts';
import { readInputs } from '../../src/inputs.ts';
import { connect } from '../../src/kubernetes/connect.ts';
import type { RunResult } from '../../src/model/result.ts';
import { MAX_COMMENT_CHARS } from '../../src/report/comment.ts';
import { renderSummary } from '../../src/report/markdown.ts';
import { viewOf } from '../../src/report/view.ts';
import { GATE_VERSION } from '../../src/version.ts';
import { startApiServer } from '../../test/stub/api-server.ts';
import { readRecording } from '../../test/stub/recordings.ts';

const SCENARIO = 'S4';
/** As with the default timeout; nobody waits for it while documentation is generated. */
const WAITED_MS = 5 * 60_000;

const silent: Log = {
  line: () => undefined,
  group: () => undefined,
  notice: () => undefined,
  warning: () => undefined,
  error: () => undefined,
  debug: () => undefined,
};

/** The comment that the gate writes about a recorded cluster, without its folded parts, as a quote. */
export async function commentPicture(): Promise<string> {
  const result = await diagnoseRecorded();
  const waited: RunResult = {
    ...result,
    elapsedMs: WAITED_MS,
    timeoutMs: WAITED_MS,
    namespaces: result.namespaces.map((one) => ({ ...one, elapsedMs: WAITED_MS })),
  };
  const comment = renderSummary(viewOf(waited), {}, MAX_COMMENT_CHARS);
  const start = comment.indexOf('###');
  const end = comment.indexOf('<details>');
  if (start < 0 || end < 0) throw new Error(`the comment has another form now:\n${comment}`);
  return comment
    .slice(start, end)
    .trim()
    .split('\n')
    .map((line) => `> ${line}`.trimEnd())
    .join('\n');
}

async function diagnoseRecorded(): Promise<RunResult> {
  const recording = readRecording(SCENARIO);
  const folder = await mkdtemp(join(tmpdir(), 'teardown-docs-'));
  const server = await startApiServer({ recording });
  try {
    const inputs = readInputs({ namespace: recording.namespace });
    const api = await connect({
      kubeconfig: await server.kubeconfig(join(folder, 'kubeconfig')),
      env: {},
      redactor: createRedactor(),
      userAgent: 'namespace-teardown-gate-docs',
      homeDir: folder,
    });
    try {
      return await runGate(
        { ...inputs, timeoutMs: 0 },
        {
          api,
          clock: systemClock,
          log: silent,
          signal: new AbortController().signal,
          gateVersion: GATE_VERSION,
        },
      );
    } finally {
      await api.close();
    }
  } finally {
    await server.close();
    await rm(folder, { recursive: true, force: true });
  }
}
