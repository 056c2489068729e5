import { describe, expect, test } from 'vitest';
import { renderMarkdown } from '../../demo/markdown.ts';

describe('renderMarkdown shows what GitHub would', () => {
  test.each([
    { name: 'no script', markdown: 'a<script>alert(1)</script>', not: /<script|alert/ },
    { name: 'no handler', markdown: '<img src="x" onerror="y">', not: /onerror/ },
    { name: 'no style', markdown: '<b style="x" class="y">z</b>', not: /style|class/ },
    { name: 'no script address', markdown: '[x](javascript:alert(1))', not: /javascript/ },
    { name: 'no hidden comment', markdown: '<!-- marker -->\n\ntext', not: /marker/ },
  ])('$name', ({ markdown, not }) => {
    expect(renderMarkdown(markdown, 'comment')).not.toMatch(not);
  });

  test('keeps tables and folded sections', () => {
    const markdown =
      '<details><summary>More</summary>\n\n| a | b |\n| - | - |\n| 1 | 2 |\n\n</details>';
    const html = renderMarkdown(markdown, 'summary');

    expect(html).toMatch(/<details><summary>More<\/summary>\s*<table>/);
    expect(html).toContain('<td>2</td>');
  });

  test('keeps line breaks in comments, not in summaries', () => {
    expect(renderMarkdown('a\nb', 'comment')).toContain('<br');
    expect(renderMarkdown('a\nb', 'summary')).not.toContain('<br');
  });
});
