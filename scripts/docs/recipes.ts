/**
 * `node scripts/docs/recipes.ts FOLDER`: writes the complete workflows of the documentation there, one file
 * each, for actionlint.
 */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { documentedWorkflows } from './markdown.ts';

const [folder] = process.argv.slice(2);
if (folder === undefined) throw new Error('usage: recipes.ts FOLDER');
mkdirSync(folder, { recursive: true });
for (const [at, workflow] of documentedWorkflows().entries()) {
  writeFileSync(join(folder, `recipe-${at + 1}.yml`), workflow);
}
