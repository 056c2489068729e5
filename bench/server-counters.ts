import { open, stat } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import type { ControlPlane } from '../test/cluster/control-plane.ts';
import { type AuditedRequest, requestsOf } from './audit-count.ts';
import { IDENTITY } from './tools.ts';

/** A watch is written to the audit log when it ends, and its end may come after its client's. */
const LATE_EVENTS_MS = 300;

export interface Mark {
  auditBytes: number;
  responseBytes: number;
}

export interface Counted {
  requests: AuditedRequest[];
  responseBytes: number;
}

/** Where the API server's own counters are now. */
export async function markNow(plane: ControlPlane): Promise<Mark> {
  const { size } = await stat(plane.auditLog);
  return { auditBytes: size, responseBytes: await responseBytes(plane) };
}

/** What the measured user asked for since then. */
export async function countSince(plane: ControlPlane, mark: Mark): Promise<Counted> {
  const bytes = (await responseBytes(plane)) - mark.responseBytes;
  await sleep(LATE_EVENTS_MS);
  const text = await readFrom(plane.auditLog, mark.auditBytes);
  return { requests: requestsOf(text.split('\n'), IDENTITY), responseBytes: bytes };
}

async function readFrom(path: string, position: number): Promise<string> {
  const file = await open(path);
  try {
    const { size } = await file.stat();
    const buffer = Buffer.alloc(size - position);
    await file.read(buffer, 0, buffer.length, position);
    return buffer.toString('utf8');
  } finally {
    await file.close();
  }
}

/** The metric has no user: it is only read while nobody else asks for anything of weight. */
async function responseBytes(plane: ControlPlane): Promise<number> {
  const { text } = await plane.admin.call('GET', '/metrics');
  const values = text.matchAll(/^apiserver_response_sizes_sum\{([^}]*)\} (\S+)$/gm);
  let sum = 0;
  for (const [, labels = '', value] of values) {
    if (!labels.includes('subresource="/metrics"')) sum += Number(value);
  }
  return sum;
}
