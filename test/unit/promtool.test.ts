import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { renderMetrics } from '../../src/report/open-metrics.ts';
import { viewOf } from '../../src/report/view.ts';
import { REPOSITORY } from '../stub/action-yml.ts';
import { NASTY_TEXTS } from '../stub/nasty.ts';
import { poison } from '../stub/poison.ts';
import { deadApiService, deadlock, gone, notSeen, runOf } from '../stub/results.ts';

/** promtool, the tool of Prometheus, judges the metrics and the rules for alerts. */

const isThere = spawnSync('promtool', ['--version']).status === 0;
const folder = mkdtempSync(join(tmpdir(), 'promtool-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

function promtool(args: string[], input = '') {
  const { status, stdout, stderr } = spawnSync('promtool', args, { cwd: folder, input });
  return { status, said: `${stdout}${stderr}`.trim() };
}

const run = runOf([deadlock('a'), deadApiService('b'), notSeen('c'), gone('d')]);
const metricsOf = (result: typeof run): string => renderMetrics(viewOf(result));
const nasty = NASTY_TEXTS.map((end) => poison(run, (text) => `${text}${end}`));

describe.skipIf(!isThere)(`promtool${isThere ? '' : ' (skipped: it is not on PATH)'}`, () => {
  test.each([
    { what: 'a run', texts: [metricsOf(run)] },
    { what: 'any text in every place', texts: nasty.map(metricsOf) },
  ])('reads the metrics of $what in both text formats', ({ texts }) => {
    for (const text of texts) {
      expect(promtool(['check', 'metrics'], text)).toEqual({ status: 0, said: '' });
      // The only reader of OpenMetrics in promtool wants a time at each sample.
      writeFileSync(join(folder, 'metrics'), text.replaceAll(/^(\w.*)$/gm, '$1 1700000000'));
      const blocks = promtool(['tsdb', 'create-blocks-from', 'openmetrics', 'metrics', 'blocks']);
      expect(blocks).toMatchObject({ status: 0 });
    }
  });

  test('sees the alerts fire, and only when they should', () => {
    const [series, labels] =
      /^namespace_terminating_seconds\{(.*)\}/m.exec(metricsOf(runOf([deadlock('a')]))) ?? [];
    const owned = Object.fromEntries(
      [...(labels ?? '').matchAll(/(\w+)="([^"]*)"/g)].map(([, name, value]) => [name, value]),
    );
    const hang = {
      exp_labels: { severity: 'warning', ...owned },
      exp_annotations: {
        summary: 'Namespace a is terminating for 1h 1m 0s',
        description:
          'Cause: owner-missing. `npx namespace-teardown-gate a --now` explains it and says what to do.',
      },
    };
    const summary = 'No run of namespace-teardown-gate has reported for a day';
    const missing = { exp_labels: { severity: 'info' }, exp_annotations: { summary } };
    const alerts: [time: string, name: string, expected: object[]][] = [
      ['2m', 'NamespaceTerminating', []],
      ['3m', 'NamespaceTerminating', [hang]],
      ['23h', 'NamespaceTeardownMetricsMissing', []],
      ['25h', 'NamespaceTeardownMetricsMissing', [missing]],
    ];
    const input_series = [
      { series, values: '3480+60x3' },
      { series: 'teardown_namespaces{outcome="stuck"}', values: '1x3' },
    ];
    const alert_rule_test = alerts.map(([eval_time, alertname, exp_alerts]) => ({
      ...{ eval_time, alertname, exp_alerts },
    }));
    const rules = {
      rule_files: [join(REPOSITORY, 'deploy', 'prometheus', 'alerts.yaml')],
      evaluation_interval: '1m',
      tests: [{ interval: '1m', input_series, alert_rule_test }],
    };
    writeFileSync(join(folder, 'rules.yaml'), JSON.stringify(rules));
    expect(promtool(['test', 'rules', 'rules.yaml'])).toMatchObject({ status: 0 });
  });
});
