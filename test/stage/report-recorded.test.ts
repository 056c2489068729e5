import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { createRedactor } from '../../src/base/redact.ts';
import { systemClock } from '../../src/base/time.ts';
import { runGate } from '../../src/gate/gate.ts';
import { readInputs } from '../../src/inputs.ts';
import { connect } from '../../src/kubernetes/connect.ts';
import type { RunResult } from '../../src/model/result.ts';
import { renderSummary } from '../../src/report/markdown.ts';
import { renderText, rootCauseSentence } from '../../src/report/plain-text.ts';
import { buildReport } from '../../src/report/report-json.ts';
import { viewOf } from '../../src/report/view.ts';
import { startApiServer } from '../stub/api-server.ts';
import { endOfLog } from '../stub/publishing.ts';
import { readRecording, recordedAt, recordedScenarios } from '../stub/recordings.ts';
import { renderPage } from '../stub/rendered.ts';
import { schemaErrors } from '../stub/report-schema.ts';
import { recordTo } from './gate-run.ts';

/** What the gate says about a recorded cluster, without waiting. */
async function lookAt(scenario: string): Promise<RunResult> {
  const recording = recordedAt(readRecording(scenario), new Date());
  const home = await mkdtemp(join(tmpdir(), 'recorded-'));
  const server = await startApiServer({ recording });
  try {
    const api = await connect({
      kubeconfig: await server.kubeconfig(join(home, 'kubeconfig')),
      env: {},
      redactor: createRedactor(),
      userAgent: 'test',
      homeDir: home,
    });
    const given: Record<string, string> = { namespace: recording.namespace, timeout: '0s' };
    const result = await runGate(readInputs(given), {
      api,
      clock: systemClock,
      log: recordTo([]),
      signal: new AbortController().signal,
      gateVersion: '1.0.0',
    });
    await api.close();
    return result;
  } finally {
    await server.close();
    await rm(home, { recursive: true });
  }
}

/** The situations of real clusters, where words of rules and words of the report have to fit together. */
describe.each(recordedScenarios())('the report of the recorded cluster %s', (scenario) => {
  test('is valid, and consists of whole sentences', async () => {
    const result = await lookAt(scenario);
    expect(schemaErrors(buildReport(result))).toEqual([]);

    const view = viewOf(result);
    const summary = renderSummary(view, {}, 900 * 1_024);
    const { lines, groups, annotations } = endOfLog(view);
    const texts = [
      summary,
      renderText(view),
      rootCauseSentence(view),
      ...lines,
      ...groups.flatMap((group) => [group.title, ...group.lines]),
      ...annotations.map(({ message }) => message),
    ];
    for (const text of texts) {
      expect(text).not.toMatch(/undefined|NaN|\[object|Invalid Date/);
      expect(text).not.toMatch(/[a-z]\.\.(?!\.)|\. \.|,,|: :|;\s*\./);
    }
    expect(rootCauseSentence(view)).not.toBe('');
    expect(summary).toContain('**Cause.**');
    expect(summary).toMatch(/\*\*(Fix|What to do)\.\*\*/);
    expect(renderPage(summary).links).toEqual([]);
  });
});
