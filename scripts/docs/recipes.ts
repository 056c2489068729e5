/**
 * `node scripts/docs/recipes.ts FOLDER`: writes the complete workflows of the README there, one file
 * each, for actionlint.
 */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { REPOSITORY } from '../../test/stub/action-yml.ts';
import { workflowsIn } from './markdown.ts';

const [folder] = process.argv.slice(2);
if (folder === undefined) throw new Error('usage: recipes.ts FOLDER');
mkdirSync(folder, { recursive: true });
const readme = readFileSync(join(REPOSITORY, 'README.md'), 'utf8');
for (const [at, workflow] of workflowsIn(readme).entries()) {
  writeFileSync(join(folder, `recipe-${at + 1}.yml`), workflow);
}
