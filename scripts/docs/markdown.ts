import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { REPOSITORY } from '../../test/stub/action-yml.ts';

/** Fenced blocks of a language, without their common indentation. */
export function fences(markdown: string, language: string): string[] {
  const pattern = new RegExp(`^( *)\`\`\`${language}\n([\\s\\S]*?)^\\1\`\`\`$`, 'gm');
  return [...markdown.matchAll(pattern)].map(([, indent = '', text = '']) =>
    text.replaceAll(new RegExp(`^${indent}`, 'gm'), ''),
  );
}

/** Fences that can be saved as a workflow as they are; the others are parts of one. */
export function workflowsIn(markdown: string): string[] {
  return fences(markdown, 'yaml').filter((text) => /^on:/m.test(text) && /^jobs:/m.test(text));
}

/** All of them, those of the README first. */
export function documentedWorkflows(): string[] {
  return ['README.md', ...globSync('docs/*.md', { cwd: REPOSITORY }).sort()].flatMap((file) =>
    workflowsIn(readFileSync(join(REPOSITORY, file), 'utf8')),
  );
}

/** Headings outside of fences and quotes. */
export function headings(markdown: string): string[] {
  return [...withoutFences(markdown).matchAll(/^#{1,6} (.+)$/gm)].map(([, text]) => text as string);
}

/** Targets of links outside of fences. */
export function links(markdown: string): string[] {
  const text = withoutFences(markdown).replaceAll(/`[^`\n]*`/g, '');
  return [...text.matchAll(/\]\(([^)\s]+)\)/g)].map(([, target]) => target as string);
}

/** As GitHub makes anchors from headings: lower case, no punctuation, dashes for spaces. */
export function anchors(markdown: string): Set<string> {
  const seen = new Map<string, number>();
  return new Set(
    headings(markdown).map((heading) => {
      const slug = heading
        .toLowerCase()
        .replaceAll(/[^\p{L}\p{N}\p{M}_ -]/gu, '')
        .replaceAll(' ', '-');
      const count = seen.get(slug) ?? 0;
      seen.set(slug, count + 1);
      return count === 0 ? slug : `${slug}-${count}`;
    }),
  );
}

function withoutFences(markdown: string): string {
  return markdown.replaceAll(/^([ >]*)```[\s\S]*?^[ >]*```$/gm, '');
}
