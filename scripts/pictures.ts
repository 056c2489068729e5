/**
 * `npm run pictures [FOLDER]`: the golden reports as GitHub shows them, in light and dark and on a phone, for
 * people to look at. Needs chromium and a font with emoji (Debian: apt-get install chromium fonts-noto-color-emoji).
 */
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { REPOSITORY } from '../test/stub/action-yml.ts';
import { MICROMARK } from '../test/stub/rendered.ts';

type Theme = 'light' | 'dark';
const PHONE_PX = 390;
const GOLDEN = join(REPOSITORY, 'test', 'unit', 'golden');
const [folder = 'coverage/pictures'] = process.argv.slice(2);
const home = mkdtempSync(join(tmpdir(), 'pictures-'));

try {
  mkdirSync(folder, { recursive: true });
  for (const file of readdirSync(GOLDEN).filter((name) => name.endsWith('.md'))) {
    for (const [width, theme] of [
      [900, 'light'],
      [900, 'dark'],
      [PHONE_PX, 'dark'],
    ] as const) {
      picture(file, width, theme, join(folder, `${file}-${width}-${theme}.png`));
    }
  }
} finally {
  rmSync(home, { recursive: true, force: true });
}

function picture(file: string, width: number, theme: Theme, target: string): void {
  const html = MICROMARK.toHtml(readFileSync(join(GOLDEN, file), 'utf8'));
  const css = readFileSync(
    join(REPOSITORY, 'node_modules', 'github-markdown-css', `github-markdown-${theme}.css`),
    'utf8',
  );
  const page = join(home, 'page.html');
  // Windows of chromium are at least 500 px wide: a narrower page is enlarged to fill one.
  const shownWidth = Math.max(500, width);
  writeFileSync(
    page,
    `<!doctype html><meta charset="utf-8"><style>${css} body { margin: 0 auto; padding: 16px; box-sizing: border-box; width: ${width}px } html { zoom: ${shownWidth / width} }</style><body class="markdown-body">${html}<script>document.title = Math.ceil(document.body.offsetHeight * ${shownWidth / width})</script>`,
  );
  const shown = chromium('--window-size=1000,1000', '--dump-dom', `file://${page}`);
  const height = /<title>(\d+)<\/title>/.exec(shown)?.[1];
  if (height === undefined) throw new Error(`chromium shows no page for ${file}: ${shown}`);
  chromium(`--window-size=${shownWidth},${height}`, `--screenshot=${target}`, `file://${page}`);
}

function chromium(...args: string[]): string {
  const flags = ['--headless=new', '--no-sandbox', '--disable-gpu', '--hide-scrollbars'];
  const run = spawnSync('chromium', [...flags, `--user-data-dir=${home}`, ...args], {
    encoding: 'utf8',
    maxBuffer: 64 * 1024 * 1024,
  });
  if (run.status !== 0) throw new Error(`chromium: ${run.error?.message ?? run.stderr}`);
  return run.stdout;
}
