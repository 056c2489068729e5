import { isIP } from 'node:net';
import { generate } from 'selfsigned';

export interface KeyPair {
  key: string;
  cert: string;
}

const EC = { keyType: 'ec', curve: 'P-256', algorithm: 'sha256' } as const;

export async function createAuthority(commonName: string): Promise<KeyPair> {
  const made = await generate([{ name: 'commonName', value: commonName }], {
    ...EC,
    notBeforeDate: anHourAgo(),
    extensions: [
      { name: 'basicConstraints', cA: true, critical: true },
      { name: 'keyUsage', keyCertSign: true, cRLSign: true, critical: true },
    ],
  });
  return { key: made.private, cert: made.cert };
}

/** A server certificate for these names and addresses. */
export function issueServer(authority: KeyPair, hosts: readonly string[]): Promise<KeyPair> {
  return issue(authority, hosts[0] ?? 'localhost', {
    name: 'subjectAltName',
    altNames: hosts.map((host) =>
      isIP(host) ? { type: 7 as const, ip: host } : { type: 2 as const, value: host },
    ),
  });
}

export function issueClient(authority: KeyPair, commonName: string): Promise<KeyPair> {
  return issue(authority, commonName);
}

type Extension = NonNullable<NonNullable<Parameters<typeof generate>[1]>['extensions']>[number];

async function issue(authority: KeyPair, commonName: string, names?: Extension): Promise<KeyPair> {
  const made = await generate([{ name: 'commonName', value: commonName }], {
    ...EC,
    ca: authority,
    notBeforeDate: anHourAgo(),
    extensions: [
      { name: 'basicConstraints', cA: false, critical: true },
      { name: 'keyUsage', digitalSignature: true, critical: true },
      { name: 'extKeyUsage', serverAuth: names !== undefined, clientAuth: names === undefined },
      ...(names ? [names] : []),
    ],
  });
  return { key: made.private, cert: made.cert };
}

/** Virtual machines wake up with clocks that differ a little from the one that signed. */
function anHourAgo(): Date {
  return new Date(Date.now() - 3_600_000);
}
