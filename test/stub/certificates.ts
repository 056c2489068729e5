import { isIP } from 'node:net';
import { generate } from 'selfsigned';

export interface KeyPair {
  key: string;
  cert: string;
}

const EC = { keyType: 'ec', curve: 'P-256', algorithm: 'sha256' } as const;
const DAY_MS = 86_400_000;

export async function createAuthority(commonName: string): Promise<KeyPair> {
  const made = await generate([{ name: 'commonName', value: commonName }], {
    ...EC,
    notBeforeDate: new Date(Date.now() - DAY_MS),
    extensions: [
      { name: 'basicConstraints', cA: true, critical: true },
      { name: 'keyUsage', keyCertSign: true, critical: true },
    ],
  });
  return { key: made.private, cert: made.cert };
}

export interface LeafOptions {
  commonName?: string;
  hosts?: readonly string[];
  isExpired?: boolean;
}

export async function issue(authority: KeyPair, options: LeafOptions = {}): Promise<KeyPair> {
  const hosts = options.hosts ?? ['127.0.0.1', 'localhost'];
  const made = await generate([{ name: 'commonName', value: options.commonName ?? 'server' }], {
    ...EC,
    ca: authority,
    notBeforeDate: new Date(Date.now() - DAY_MS),
    notAfterDate: new Date(Date.now() + (options.isExpired ? -DAY_MS / 2 : 30 * DAY_MS)),
    extensions: [
      { name: 'basicConstraints', cA: false, critical: true },
      { name: 'keyUsage', digitalSignature: true, critical: true },
      { name: 'extKeyUsage', serverAuth: true, clientAuth: true },
      {
        name: 'subjectAltName',
        altNames: hosts.map((host) =>
          isIP(host) ? { type: 7 as const, ip: host } : { type: 2 as const, value: host },
        ),
      },
    ],
  });
  return { key: made.private, cert: made.cert };
}

export function base64(text: string): string {
  return Buffer.from(text).toString('base64');
}
