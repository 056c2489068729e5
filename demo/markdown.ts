import { marked } from 'marked';
import sanitizeHtml from 'sanitize-html';

/** What GitHub lets through of the HTML in Markdown: no script, no style, no class, no handler. */
const ALLOWED: sanitizeHtml.IOptions = {
  allowedTags: [
    ...'h1 h2 h3 h4 h5 h6 p br hr a img b i strong em del s ins kbd code pre samp var tt'.split(
      ' ',
    ),
    ...'ul ol li dl dt dd blockquote q div span sub sup summary details'.split(' '),
    ...'table thead tbody tfoot tr th td caption ruby rt rp input'.split(' '),
  ],
  allowedAttributes: {
    a: ['href'],
    img: ['src', 'alt'],
    // The language of a fence and the boxes of task lists come from the renderer, not from the text.
    code: ['class'],
    input: ['type', 'checked', 'disabled'],
    details: ['open'],
    '*': ['align', 'title', 'colspan', 'rowspan', 'start'],
  },
  allowedClasses: { code: ['language-*'] },
  allowedSchemes: ['http', 'https', 'mailto'],
  disallowedTagsMode: 'discard',
};

/**
 * GitHub-flavoured Markdown as GitHub shows it. In comments, unlike in summaries, every line break
 * of the text is one on the page.
 */
export function renderMarkdown(markdown: string, where: 'comment' | 'summary'): string {
  const html = marked.parse(markdown, { gfm: true, breaks: where === 'comment', async: false });
  return sanitizeHtml(html, ALLOWED);
}
