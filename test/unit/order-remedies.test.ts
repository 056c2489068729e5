import { expect, test } from 'vitest';
import { contextOf } from '../../src/diagnose/context.ts';
import { everythingHeld } from '../../src/diagnose/owner/finalizers.ts';
import { orderRemedies } from '../../src/diagnose/owner/remedies.ts';
import { orderEntry, orderOf } from '../../src/forecast/order.ts';
import { predict } from '../../src/forecast/predict.ts';
import { readOk } from '../../src/model/read.ts';
import type { Snapshot } from '../../src/model/snapshot.ts';
import { told } from './changes.ts';
import {
  FORECAST,
  readRecordedForecast,
  readRecordedLook,
  recordingNames,
  rewound,
} from './recorded-looks.ts';

/** Every command by which a person could be told to delete a held object before the namespace. */
function commandsFor(now: Snapshot): string[] {
  const context = contextOf(predict(now));
  return everythingHeld(context)
    .filter(({ objects }) => objects.length > 0)
    .flatMap((held) => orderRemedies(context, held, 'its controller'))
    .flatMap(({ command }) => command ?? []);
}

test('no command deletes all objects of a type outside of the namespace', () => {
  let count = 0;
  for (const name of recordingNames()) {
    const now = name.endsWith(FORECAST)
      ? readRecordedForecast(name.slice(0, -FORECAST.length)).now
      : rewound(readRecordedLook(name));
    const ordered = orderOf(now).map((step) => orderEntry(now.namespace.name, step).command);
    const whole = [...commandsFor(now), ...ordered].filter((one) => one.includes(' --all'));
    count += whole.length;
    expect(
      whole.filter((one) => !one.includes(` -n ${now.namespace.name} `)),
      name,
    ).toEqual([]);
  }
  expect(count).toBeGreaterThan(100);
});

test('what a controller may run with is deleted by name, and after the objects of that controller, which made it', () => {
  const { now } = readRecordedForecast('S4');
  const [widgets] = now.content.filter(({ type }) => type.kind === 'Widget');
  const account = now.content.find(({ type }) => type.kind === 'ServiceAccount');
  if (!widgets?.read.ok || account?.read.ok !== true) throw new Error('nothing was recorded');
  // As GitHub's runner sets protect their ServiceAccounts.
  const [group] = widgets.read.value.guarded;
  if (group === undefined) throw new Error('no object has a finalizer');
  const held = group.examples.map((one) => ({
    ...one,
    ...{ apiVersion: 'v1', kind: 'ServiceAccount', name: 'runner', uid: 'runner' },
    ownerReferences: [{ ...one, controller: true }],
  }));
  const guarded = [{ ...group, examples: held }];
  const read = readOk({ ...account.read.value, guarded, total: 1 });
  const content = [{ ...account, read }, ...now.content.filter((one) => one !== account)];
  const present = { ...now.forecast?.present, content };
  const changed = { ...now, content, forecast: { ...now.forecast, present } } as Snapshot;
  const name = now.namespace.name;
  expect(orderOf(changed).map((step) => orderEntry(name, step).command)).toEqual([
    `kubectl delete widgets.example.com --all -n ${name} --wait`,
    `kubectl delete serviceaccounts runner -n ${name} --wait`,
  ]);
  const whole = `kubectl delete widgets.example.com --all -n ${name} --wait`;
  expect(commandsFor(changed)).toEqual([whole, whole]);
});

test('a controller that deletes what it deployed elsewhere is not brought back as the fix', () => {
  const remediesOf = (spelled?: (text: string) => string) =>
    told('S4', undefined, spelled)
      .findings.filter(({ code }) => code === 'owner-missing')
      .flatMap(({ remedies }) => remedies);
  const [usual] = remediesOf();
  const [first, ...others] = remediesOf((text) =>
    text
      .replaceAll('example.com', 'argoproj.io')
      .replaceAll('widgets', 'applications')
      .replaceAll('Widget', 'Application'),
  );
  expect(usual?.command).toMatch(/^kubectl delete /);
  expect(first?.role).toBe('now');
  expect(first?.command).toMatch(/^kubectl patch .*finalizers/);
  const later = others.filter(({ text }) => /^(?:Install|Delete) /.test(text));
  expect(later.map(({ role }) => role).toSorted()).toEqual(['next', 'or']);
  expect(later.every(({ risk }) => risk?.includes('outside of this namespace'))).toBe(true);
});

test('nothing is deleted first for a controller that is not there, and one that sleeps is started first', () => {
  const stepsOf = (name: string) => orderOf(rewound(readRecordedLook(name)));
  expect(stepsOf('everyday-crossplane-uninstalled')).toEqual([]);
  expect(stepsOf('everyday-crossplane-asleep').map(({ why }) => why)).toEqual([
    expect.stringMatching(
      / may have to create .*, and is not running, so start it first \(kubectl scale .*=1\)$/,
    ),
  ]);
});

test('what makes objects that a GitOps tool deletes elsewhere is left to a person, whether it owns them or not', () => {
  const recorded = JSON.stringify(readRecordedForecast('S4').now)
    .replaceAll('example.com', 'argoproj.io')
    .replaceAll('widgets', 'applications')
    .replaceAll('Widget', 'Application');
  const now: Snapshot = JSON.parse(recorded);
  const application = now.content.find(({ type }) => type.kind === 'Application');
  if (!application?.read.ok) throw new Error('nothing was recorded');
  const type = { ...application.type, resource: 'applicationsets', kind: 'ApplicationSet' };
  const maker = { type, read: readOk({ ...application.read.value, total: 1, guarded: [] }) };
  for (const content of [now.content, now.forecast?.present.content]) content?.push(maker);
  expect(orderOf(now).map((one) => [one.type.kind, one.isByHand])).toEqual([
    ['ApplicationSet', true],
    ['Application', true],
  ]);
});
