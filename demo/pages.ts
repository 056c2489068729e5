import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { renderMarkdown } from './markdown.ts';

const css = readFileSync(
  createRequire(import.meta.url).resolve('github-markdown-css/github-markdown.css'),
  'utf8',
);

/** The frame around the Markdown: one file without references, so that it can be sent by mail. */
function page(title: string, body: string): string {
  return `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>${title}</title>
<style>
${css}
:root { color-scheme: light dark; --page: #ffffff; --frame: #d1d9e0; --bar: #f6f8fa; --text: #1f2328; --muted: #59636e }
@media (prefers-color-scheme: dark) {
  :root { --page: #0d1117; --frame: #3d444d; --bar: #151b23; --text: #f0f6fc; --muted: #9198a1 }
}
body { margin: 0; padding: 24px; background: var(--page); color: var(--text); font: 14px/1.5 -apple-system, "Segoe UI", "Noto Sans", Helvetica, Arial, sans-serif }
main { max-width: 920px; margin: 0 auto }
h1.title { font-size: 24px; font-weight: 400; margin: 0 0 4px }
h1.title span, .muted { color: var(--muted) }
.state { display: inline-block; border-radius: 2em; padding: 4px 12px; margin: 4px 0 20px; background: #8250df; color: #fff }
.thread { display: flex; gap: 16px }
.avatar { flex: none; width: 40px; height: 40px; border-radius: 50%; background: #24292f; color: #fff; text-align: center; line-height: 40px }
.box { flex: auto; min-width: 0; border: 1px solid var(--frame); border-radius: 6px; overflow: hidden }
.bar { padding: 8px 16px; background: var(--bar); border-bottom: 1px solid var(--frame) }
.label { border: 1px solid var(--frame); border-radius: 2em; padding: 0 7px; margin-left: 4px; font-size: 12px }
.box .markdown-body { padding: 16px; font-size: 14px; background: transparent }
</style>
<main>
${body}
</main>
</html>
`;
}

export interface PullRequest {
  number: number;
  title: string;
}

/** A comment on the conversation page of a pull request. */
export function commentPage(pr: PullRequest, markdown: string, isEdited: boolean): string {
  const edited = isEdited ? ' · edited' : '';
  return page(
    `${pr.title} · Pull request #${pr.number}`,
    `<h1 class="title">${pr.title} <span>#${pr.number}</span></h1>
<div class="state">Merged</div>
<div class="thread">
<div class="avatar">⚙</div>
<div class="box">
<div class="bar"><b>github-actions</b> <span class="label muted">bot</span> <span class="muted">commented now${edited}</span></div>
<div class="markdown-body">
${renderMarkdown(markdown, 'comment')}
</div>
</div>
</div>`,
  );
}

/** The summary of a job, below the graph of its workflow run. */
export function summaryPage(
  run: { workflow: string; number: number; job: string },
  markdown: string,
): string {
  return page(
    `${run.workflow} #${run.number}`,
    `<h1 class="title">${run.workflow} <span>#${run.number}</span></h1>
<p class="muted">Summary</p>
<div class="box">
<div class="bar"><b>${run.job}</b> <span class="muted">summary</span></div>
<div class="markdown-body">
${renderMarkdown(markdown, 'summary')}
</div>
</div>`,
  );
}
