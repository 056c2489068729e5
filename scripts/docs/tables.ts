import { CLUES } from '../../src/diagnose/owner/clues.ts';
import { choicesOf, INPUT_ROWS } from '../../src/inputs.ts';
import { FINDING_CODES, type FindingCode } from '../../src/model/finding.ts';
import { OUTCOMES, type Outcome, verdictOf } from '../../src/model/outcome.ts';
import { OUTPUTS } from '../../src/outputs.ts';

const OUTCOME_MEANINGS: Record<Outcome, string> = {
  clear: 'forecast only: nothing that the gate found would hold it',
  'would-hang': 'forecast only: the deletion would hang',
  deleted: 'the namespace with this UID was deleted',
  'not-found': 'it did not exist at the start; `if-not-found` decides',
  recreated: 'it was deleted, and a new namespace has the same name',
  forced: 'it was deleted because the gate force-finalized it',
  progressing: 'still there, but objects are still being deleted or a grace period runs',
  'not-terminating': 'its deletion was not requested; the gate does not wait',
  inconclusive: 'still there, and too little could be read to find the cause',
  stuck: 'still there at the timeout, and nothing changes',
  cancelled: 'the run was cancelled while waiting',
};

const VERDICT_WORDS = { pass: 'passes', warn: 'passes, with a warning', fail: 'fails' } as const;

/** Returns the table of outcomes. The verdicts come from the code, so the table cannot contradict it. */
export function outcomeTable(): string {
  const rows = OUTCOMES.map((outcome) => {
    const verdict = verdictOf(outcome, { failOn: 'not-deleted', ifNotFound: 'ok' });
    return [code(outcome), OUTCOME_MEANINGS[outcome], VERDICT_WORDS[verdict]];
  });
  return table(['outcome', 'meaning', 'the gate'], rows);
}

/** Returns the table of the inputs that exist everywhere, or of those that only a workflow run has. */
export function inputTable(which: 'everywhere' | 'only in the action'): string {
  const rows = INPUT_ROWS.filter(
    ([, { onlyInAction }]) => Boolean(onlyInAction) === (which === 'only in the action'),
  ).map(([name, row]) => [
    code(name),
    row.default === '' ? '' : code(row.default),
    [escapeText(row.description), choicesOf(row).map(code).join(', ')].filter(Boolean).join(': '),
  ]);
  return table(['input', 'default', 'meaning'], rows);
}

function code(text: string): string {
  return `\`${text}\``;
}

export function outputTable(): string {
  const rows = Object.entries(OUTPUTS).map(([name, text]) => [code(name), escapeText(text)]);
  return table(['output', 'meaning'], rows);
}

/** Returns the table of clues, in the order in which suspects are listed. */
export function clueTable(): string {
  const rows = Object.entries(CLUES).map(([kind, { text, weight }]) => [
    code(kind),
    escapeText(text),
    WEIGHTS[weight],
  ]);
  return table(['clue', 'sentence in the report', 'names the owner'], rows);
}

const WEIGHTS = {
  decides: 'yes, if no other program has such a clue',
  marks: 'as `likely`, if nobody else has them',
  supports: 'as `likely`, where nobody has the marks: the most clues',
  able: 'no',
} as const;

export interface FindingDoc {
  code: string;
  meaning: string;
}

export function findingTable(docs: readonly FindingDoc[]): string {
  const rows = docs.map(({ code: name, meaning }) => [
    `[\`${name}\`](docs/findings.md#${name})`,
    meaning,
  ]);
  return table(['code', 'meaning'], rows);
}

/** Reads docs/findings.md, which has one section per code in the order of FINDING_CODES. */
export function readFindingDocs(markdown: string): FindingDoc[] {
  const sections = markdown.split(/^## `/m).slice(1);
  const docs = sections.map((section): FindingDoc => {
    const [heading = '', meaning = '', fix = ''] = section.split(/\n\n/);
    const code = heading.replace(/`$/, '');
    if (!fix.startsWith('**Usual fix.** ')) {
      throw new Error(`docs/findings.md, ${code}: the second paragraph is not "**Usual fix.** …"`);
    }
    return { code, meaning: oneLine(meaning) };
  });
  const found = docs.map(({ code }) => code);
  const missing = FINDING_CODES.filter((code) => !found.includes(code));
  const unknown = found.filter((code) => !FINDING_CODES.includes(code as FindingCode));
  if (missing.length > 0 || unknown.length > 0) {
    throw new Error(
      `docs/findings.md: no section for ${missing.join(', ') || 'none'}; not in FINDING_CODES: ${unknown.join(', ') || 'none'}`,
    );
  }
  return docs;
}

function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]): string =>
    `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`;
  return [line(head), line(head.map(() => '---')), ...rows.map(line)].join('\n');
}

function escapeText(text: string): string {
  return text.replace(/[*_~<`]/g, '\\$&');
}

function oneLine(text: string): string {
  return text.replace(/\s*\n\s*/g, ' ').trim();
}
