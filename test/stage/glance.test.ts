import { expect, test } from 'vitest';
import { PODS } from './fake-cluster.ts';
import { DEMO, stage } from './gate-run.ts';

test('logs the time of the next examination, after a minute without changes', async () => {
  const { cluster, lines, runOne } = stage(DEMO);
  cluster.held(PODS, DEMO, 'web-0', 'example.com/drain');
  await runOne({ timeout: '5m' });
  const quiet = lines.filter((line) => line.includes('no change for'));
  expect(quiet[0]).toMatch(/ 1:00 .*no change for 1m 00s; next examination at 4:30$/);
  // Ever more seldom: after one minute, two and four.
  expect(quiet).toHaveLength(3);
});

test('logs nothing in a shorter wait', async () => {
  const { cluster, lines, runOne } = stage(DEMO);
  cluster.held(PODS, DEMO, 'web-0', 'example.com/drain');
  await runOne({ timeout: '50s' });
  expect(lines.join('\n')).not.toContain('no change for');
});
