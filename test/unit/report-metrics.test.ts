import { describe, expect, test } from 'vitest';
import { renderMetrics } from '../../src/report/open-metrics.ts';
import { viewOf } from '../../src/report/view.ts';
import { NASTY_TEXTS } from '../stub/nasty.ts';
import { poison } from '../stub/poison.ts';
import { deadApiService, deadlock, foretold, gone, notSeen, runOf } from '../stub/results.ts';

const metrics = (...given: Parameters<typeof runOf>): string =>
  renderMetrics(viewOf(runOf(...given)));

const NAME = '[a-z_]+';
const LABEL = String.raw`[a-z_]+="(?:[^"\\\n]|\\["\\n])*"`;
/** The grammar of OpenMetrics 1.0, as far as gauges and quantiles need it. */
const LINES = [
  new RegExp(`^# (?:TYPE ${NAME} (?:gauge|summary)|UNIT ${NAME} [a-z]+|HELP ${NAME} .*)$`, 'u'),
  new RegExp(String.raw`^${NAME}(?:\{${LABEL}(?:,${LABEL})*\})? \d+(?:\.\d+)?$`, 'u'),
];

/** Lines that break the grammar, series that occur twice, and a missing or early end. */
function mistakesIn(text: string): string[] {
  const lines = text.split('\n');
  const [end, empty] = lines.splice(-2);
  const series = lines
    .filter((line) => !line.startsWith('#'))
    .map((line) => line.replace(/ [^ ]+$/, ''));
  return [
    ...lines.filter((line) => !LINES.some((shape) => shape.test(line))),
    ...series.filter((one, at) => series.indexOf(one) !== at),
    ...(end === '# EOF' && empty === '' ? [] : ['no end']),
  ];
}

describe('metrics.prom', () => {
  test('has the time and the cause of a terminating namespace', () => {
    const text = metrics([deadlock('a'), gone('b', 38_500), deadApiService('c')]);
    expect(mistakesIn(text)).toEqual([]);
    expect(text).toMatch(
      /^namespace_terminating_seconds\{namespace="a",cause="owner-missing"\} [\d.]+$/m,
    );
    expect(text).not.toContain('namespace_terminating_seconds{namespace="b"');
    expect(text).toContain('teardown_duration_seconds{namespace="b"} 38.5\n');
    expect(text).toContain('teardown_outcome{namespace="a",outcome="stuck"} 1\n');
    expect(text).toContain('teardown_namespaces{outcome="stuck"} 2\n');
    expect(text).toContain('teardown_namespaces{outcome="clear"} 0\n');
  });

  test('of a forecast has outcomes and no durations', () => {
    const text = metrics([foretold('S4', 'a')], { kind: 'forecast' });
    expect(text).toContain('teardown_outcome{namespace="a",outcome="would-hang"} 1\n');
    expect(text).not.toContain('teardown_duration_seconds{');
  });

  test('is valid with any text in every place', () => {
    const run = runOf([deadlock('a'), deadApiService('b'), notSeen('c'), gone('d')]);
    for (const nasty of [...NASTY_TEXTS, '"} 1\n# EOF\n', '\\', '\\n', '\ud800']) {
      const poisoned = poison(run, (text) => `${text}${nasty}`);
      expect(mistakesIn(renderMetrics(viewOf(poisoned)))).toEqual([]);
    }
  });
});
