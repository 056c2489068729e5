import { expect, test } from 'vitest';
import { diagnose } from '../../src/diagnose/diagnose.ts';
import { foresee } from '../../src/forecast/predict.ts';
import { forecastOf, outcomeOf } from '../../src/model/outcome.ts';
import {
  FORECAST,
  readRecordedForecast,
  readRecordedLook,
  recordingNames,
} from './recorded-looks.ts';

/** Recorded hangs that begin only with the deletion: a forecast calls these clear. */
const BEGIN_LATER: Record<string, string> = {
  S46: 'its owner puts the finalizer back only when it is being deleted',
};

const names = recordingNames()
  .filter((name) => name.endsWith(FORECAST))
  .map((name) => name.slice(0, -FORECAST.length));

/** The outcome of the forecast, and of the same namespace after its deletion. */
function outcomes(name: string): [foreseen: string, became: string] {
  const { now, isPodsFirst } = readRecordedForecast(name);
  const looks = readRecordedLook(name);
  return [forecastOf(foresee(now, isPodsFirst)), outcomeOf(diagnose(looks.now, looks.before))];
}

test.each(names)('%s was not called clear before it hung', (name) => {
  const [foreseen, became] = outcomes(name);
  expect(became).toMatch(/^(?:stuck|inconclusive)$/);
  expect(foreseen === 'clear' ? name in BEGIN_LATER : true, foreseen).toBe(true);
});

test('a cause that begins later cannot be foreseen', () => {
  for (const name of Object.keys(BEGIN_LATER)) expect([name, ...outcomes(name)]).toContain('clear');
});
