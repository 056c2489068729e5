import { hostname, networkInterfaces } from 'node:os';
import type { Cluster } from './clusters.ts';

/** In the place of this machine's name and addresses, which do not get into recordings. */
const HOST = 'control-plane';
const SERVER = 'kubernetes.example:6443';
const BACKEND = 'backend.example';

export function anonymous(text: string, { client }: Cluster): string {
  const name = hostname();
  const addresses = Object.values(networkInterfaces())
    .flatMap((list) => list ?? [])
    .map(({ address }) => address)
    .filter((address) => /^\d+\.\d+\.\d+\.\d+$/.test(address));
  const local = [...new Set(['127.0.0.1', ...addresses])]
    .map((address) => address.replaceAll('.', '\\.'))
    .join('|');
  // Holders of Leases are `<host>_<uid>`; a short host name inside other words is not meant.
  return text
    .replaceAll(new URL(client.connection.server).host, SERVER)
    .replaceAll(new RegExp(`\\b(?:${local})(?::\\d+)?\\b`, 'g'), BACKEND)
    .replaceAll(`"${name}"`, `"${HOST}"`)
    .replaceAll(`"${name}_`, `"${HOST}_`)
    .replaceAll(`by ${name}_`, `by ${HOST}_`);
}

/** JSON that is broad enough to be small, and deep enough for a re-recording to be reviewed. */
export function format(value: unknown, maxDepth: number, maxLine = Number.POSITIVE_INFINITY) {
  const text = (part: unknown, indent: string, depth: number): string => {
    const flat = JSON.stringify(part);
    if (typeof part !== 'object' || part === null || flat.length + indent.length < 100) return flat;
    if (depth > maxDepth && flat.length < maxLine) return flat;
    const deeper = `${indent}  `;
    const isList = Array.isArray(part);
    const parts = Object.entries(part)
      .filter(([, item]) => item !== undefined)
      .map(([key, item]) => {
        const told = text(item, deeper, depth + 1);
        return isList ? `${deeper}${told}` : `${deeper}${JSON.stringify(key)}: ${told}`;
      });
    const [open, close] = isList ? ['[', ']'] : ['{', '}'];
    return `${open}\n${parts.join(',\n')}\n${indent}${close}`;
  };
  return `${text(value, '', 0)}\n`;
}
