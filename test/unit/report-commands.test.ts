import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { JUDGES } from '../stub/rendered.ts';

const GOLDEN = join(import.meta.dirname, 'golden');

describe.each(JUDGES)('$name', ({ missing, toHtml }) => {
  test.for(globSync('*.md', { cwd: GOLDEN }))(
    'shows each fence of %s as a block',
    (file, { skip }) => {
      if (missing !== undefined) skip(missing);
      const markdown = readFileSync(join(GOLDEN, file), 'utf8');
      // Some renderers, as in apps for phones, need the blank line that CommonMark does not ask for.
      expect(markdown).not.toMatch(/\S\n *```(?:sh|yaml)$/m);
      const fences = markdown.match(/^ *```\w+$/gm) ?? [];
      const html = toHtml(markdown);
      expect(html.match(/<pre\b/g) ?? []).toHaveLength(fences.length);
      expect(html).not.toContain('```');
    },
  );
});
