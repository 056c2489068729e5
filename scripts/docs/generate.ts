import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { HELP } from '../../src/arguments.ts';
import { REPOSITORY, readActionYml } from '../../test/stub/action-yml.ts';
import { commentPicture } from './picture.ts';
import { findingTable, inputTable, outcomeTable, outputTable, readFindingDocs } from './tables.ts';

/** The generated parts of the README by the names of their markers. */
export async function generateBlocks(): Promise<Record<string, string>> {
  const action = readActionYml();
  const findings = readFileSync(join(REPOSITORY, 'docs', 'findings.md'), 'utf8');
  return {
    picture: await commentPicture(),
    outcomes: outcomeTable(),
    findings: findingTable(readFindingDocs(findings)),
    inputs: inputTable(action),
    outputs: outputTable(action),
    help: `\`\`\`text\n${HELP}\`\`\``,
  };
}

/** Everything between `<!-- name:begin … -->` and `<!-- name:end -->` is replaced. */
export function insertBlock(markdown: string, name: string, block: string): string {
  const pattern = new RegExp(`(<!-- ${name}:begin[^>]*-->\n)[\\s\\S]*?(<!-- ${name}:end -->)`);
  if (!pattern.test(markdown)) throw new Error(`README.md has no markers for "${name}"`);
  return markdown.replace(pattern, (_all, begin, end) => `${begin}\n${block}\n\n${end}`);
}
