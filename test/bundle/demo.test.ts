import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { REPOSITORY } from '../stub/action-yml.ts';

const out = mkdtempSync(join(tmpdir(), 'gate-demo-'));
afterAll(() => rmSync(out, { recursive: true, force: true }));

interface Demo {
  code: number | null;
  text: string;
  page: (name: string) => string;
}

function runDemo(scenario: string): Promise<Demo> {
  const folder = join(out, scenario);
  const script = join(REPOSITORY, 'demo', 'run.ts');
  const child = spawn(process.execPath, [script, '--scenario', scenario, '--out', folder], {
    env: { ...process.env, NO_COLOR: '1' },
    stdio: ['ignore', 'pipe', 'pipe'],
    timeout: 220_000,
  });
  let text = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (chunk: string) => {
      text += chunk;
    });
  }
  return new Promise((resolve, reject) => {
    child.once('error', reject);
    // Not before every process that holds the pipes has ended: the demo leaves none behind.
    child.once('close', (code) =>
      resolve({ code, text, page: (name) => readFileSync(join(folder, name), 'utf8') }),
    );
  });
}

describe.concurrent('npm run demo', () => {
  test('shows a hang, its cause and its repair', async () => {
    const demo = await runDemo('preview-pr-42');

    expect(demo.text).toContain('Widget db');
    expect(demo.code, demo.text).toBe(0);
    for (const name of ['summary.html', 'comment.html']) {
      expect(demo.page(name)).toContain('widgets.example.com/cleanup');
      expect(demo.page(name)).toContain('<strong>Fix.</strong>');
      expect(demo.page(name)).not.toContain('<script');
    }
    expect(demo.page('comment-green.html')).toContain('✅');
  });
});
