/**
 * `node bare-client.ts SPEC.json`: reads collections page by page and throws away what it read. This
 * is what reading costs when nobody thinks about it; the gate is compared with it.
 */
import { readFileSync } from 'node:fs';
import { promisify } from 'node:util';
import { gunzip } from 'node:zlib';
import { Agent } from 'undici';
import type { BareSpec } from './bare-spec.ts';

const unpack = promisify(gunzip);
const spec = JSON.parse(readFileSync(process.argv[2] ?? '', 'utf8')) as BareSpec;
const agent = new Agent({ connections: spec.connections, connect: { ca: spec.ca } });
let pages = 0;

async function readPage(path: string, headers: Record<string, string>): Promise<string> {
  const answer = await agent.request({ origin: spec.server, path, method: 'GET', headers });
  const bytes = Buffer.from(await answer.body.arrayBuffer());
  if (answer.statusCode !== 200) throw new Error(`${path}: ${answer.statusCode}`);
  pages++;
  const text = answer.headers['content-encoding'] === 'gzip' ? await unpack(bytes) : bytes;
  const list = JSON.parse(text.toString('utf8')) as { metadata?: { continue?: string } };
  return list.metadata?.continue ?? '';
}

let next = 0;
async function worker(): Promise<void> {
  for (let index = next++; index < spec.collections.length; index = next++) {
    const { path, limits, headers } = spec.collections[index] as BareSpec['collections'][number];
    let token = '';
    for (let page = 0; page === 0 || token !== ''; page++) {
      const limit = limits[page] ?? limits.at(-1) ?? 0;
      const query = new URLSearchParams(limit === 0 ? {} : { limit: String(limit) });
      if (token !== '') query.set('continue', token);
      token = await readPage(`${path}?${query}`, headers);
    }
  }
}

await Promise.all(Array.from({ length: spec.connections }, worker));
await agent.close();
console.log(pages);
