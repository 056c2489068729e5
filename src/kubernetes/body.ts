import type { Readable } from 'node:stream';
import { createGunzip } from 'node:zlib';
import type { OpenAnswer } from './connection.ts';

/** A page of 500 objects with managedFields is a few MB; 500 of the largest objects etcd takes are not. */
const MAX_BODY_BYTES = 64 * 1024 * 1024;

export class BodyTooLarge extends Error {
  constructor() {
    super(`the answer is larger than ${MAX_BODY_BYTES / 1024 / 1024} MiB`);
    this.name = 'BodyTooLarge';
  }
}

/** The whole body as text, unpacked. A body that is not read to its end would keep its connection. */
export async function readBody(answer: OpenAnswer, maxBytes = MAX_BODY_BYTES): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  try {
    for await (const chunk of unpack(answer) as AsyncIterable<Buffer>) {
      bytes += chunk.length;
      if (bytes > maxBytes) throw new BodyTooLarge();
      chunks.push(chunk);
    }
  } catch (error) {
    answer.body.on('error', () => undefined).destroy();
    throw error;
  }
  return Buffer.concat(chunks).toString('utf8');
}

function unpack(answer: OpenAnswer): Readable {
  if (answer.headers['content-encoding'] !== 'gzip') return answer.body;
  const gunzip = createGunzip();
  // pipe() does not hand errors on, and a body that breaks off would wait for ever.
  answer.body.on('error', (error) => gunzip.destroy(error));
  return answer.body.pipe(gunzip);
}
