import { spawnSync } from 'node:child_process';
import { micromark } from 'micromark';
import { gfm, gfmHtml } from 'micromark-extension-gfm';
import { type DefaultTreeAdapterTypes, parseFragment } from 'parse5';

type Node = DefaultTreeAdapterTypes.ChildNode | DefaultTreeAdapterTypes.DocumentFragment;

const EXTENSIONS = ['footnotes', 'table', 'autolink', 'strikethrough', 'tagfilter', 'tasklist'];

/** Markdown to HTML as GitHub's parser does it, before GitHub's own filters. */
export interface Judge {
  name: string;
  /** Why it cannot judge on this machine; `undefined` when it can. */
  missing: string | undefined;
  toHtml(markdown: string): string;
}

/** Installed with npm, so it is always there. */
export const MICROMARK: Judge = {
  name: 'micromark',
  missing: undefined,
  toHtml: (markdown) =>
    micromark(markdown, {
      extensions: [gfm()],
      htmlExtensions: [gfmHtml()],
      allowDangerousHtml: true,
    }),
};

const hasCmark = spawnSync('cmark-gfm', ['--version']).status === 0;

/** GitHub's own parser, used as well where it is installed; else `name` says why tests skip it. */
const CMARK: Judge = {
  name: hasCmark ? 'cmark-gfm' : 'cmark-gfm (skipped: it is not installed)',
  missing: hasCmark
    ? undefined
    : 'cmark-gfm, the Markdown parser of GitHub, is not installed (Debian: apt-get install cmark-gfm)',
  toHtml: (markdown) => {
    const options = ['--unsafe', '--github-pre-lang', ...EXTENSIONS.flatMap((one) => ['-e', one])];
    const run = spawnSync('cmark-gfm', options, {
      input: markdown,
      maxBuffer: 64 * 1024 * 1024,
      encoding: 'utf8',
    });
    if (run.status !== 0) throw new Error(`cmark-gfm: ${run.stderr}`);
    return run.stdout;
  },
};

export const JUDGES = [MICROMARK, CMARK];

/** Markdown as a page: a parser of Markdown, and an HTML parser as browsers have it. */
export function renderPage(markdown: string, judge = MICROMARK): Page {
  return readPage(judge.toHtml(markdown));
}

export interface Page {
  /** The tree of elements without code spans and text: what the text must not be able to change. */
  skeleton: string;
  /** Tag names, once each. */
  elements: Set<string>;
  /** Addresses of links. */
  links: string[];
  /** Attributes as "tag.name", once each. */
  attributes: Set<string>;
  comments: string[];
  /** Texts of code spans and blocks. */
  code: string[];
  /** Text outside of code and links: where GitHub looks for mentions and references. */
  prose: string[];
}

function readPage(html: string): Page {
  const page: Page = {
    skeleton: '',
    elements: new Set(),
    links: [],
    attributes: new Set(),
    comments: [],
    code: [],
    prose: [],
  };
  const skeleton: string[] = [];
  const walk = (node: Node, within: readonly string[]): void => {
    if (node.nodeName === '#text' && 'value' in node) {
      if (!within.some((tag) => ['code', 'pre', 'a'].includes(tag))) page.prose.push(node.value);
      return;
    }
    if (node.nodeName === '#comment' && 'data' in node) {
      page.comments.push(node.data);
      return;
    }
    if (!('childNodes' in node)) return;
    const tag = node.nodeName;
    const isElement = 'attrs' in node;
    // A place where a line may break shows nothing.
    if (tag === 'wbr') return;
    if (isElement) {
      page.elements.add(tag);
      for (const { name, value } of node.attrs) {
        page.attributes.add(`${tag}.${name}`);
        if (name === 'href' || name === 'src') page.links.push(value);
      }
      if (tag === 'code') page.code.push(textOf(node));
    }
    const isShown = isElement && tag !== 'code';
    if (isShown) skeleton.push(`<${tag}>`);
    for (const child of node.childNodes) walk(child, [...within, tag]);
    if (isShown) skeleton.push(`</${tag}>`);
  };
  walk(parseFragment(html), []);
  page.skeleton = skeleton.join('');
  return page;
}

function textOf(node: Node): string {
  if ('value' in node) return node.value;
  return 'childNodes' in node ? node.childNodes.map(textOf).join('') : '';
}
