import { generateKeyPairSync, randomBytes } from 'node:crypto';
import { mkdtemp, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createAuthority, issue } from '../stub/certificates.ts';
import { IDENTITIES, PERSON } from './identities.ts';
import { type Connection, writeKubeconfigText } from './kubeconfig.ts';
import { freePorts } from './processes.ts';

const CONTROLLER_MANAGER = 'system:kube-controller-manager';

export interface Ports {
  etcd: number;
  etcdPeer: number;
  apiServer: number;
}

export interface Prepared {
  dataDir: string;
  ports: Ports;
  ca: string;
  adminToken: string;
}

/** Ports, certificates, tokens and kubeconfigs: all that the servers need to start. */
export async function prepareDataDir(): Promise<Prepared> {
  const [dataDir, [etcd = 0, etcdPeer = 0, apiServer = 0], ca, frontProxyCa] = await Promise.all([
    mkdtemp(join(tmpdir(), 'teardown-gate-cluster-')),
    freePorts(3),
    createAuthority('control-plane-ca'),
    createAuthority('front-proxy-ca'),
  ]);
  const [serving, frontProxy] = await Promise.all([
    issue(ca, { hosts: ['127.0.0.1', 'localhost', 'kubernetes.default.svc'] }),
    issue(frontProxyCa, { commonName: 'front-proxy-client' }),
  ]);
  const serviceAccounts = generateKeyPairSync('rsa', {
    modulusLength: 2048,
    publicKeyEncoding: { type: 'spki', format: 'pem' },
    privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
  });
  const server = `https://127.0.0.1:${apiServer}`;
  const users = [CONTROLLER_MANAGER, 'admin', PERSON, ...IDENTITIES].map((name) => ({
    name,
    token: randomBytes(24).toString('hex'),
  }));
  const mayAll = new Set(['admin', PERSON]);
  const tokens = users.map(
    ({ name, token }) => `${token},${name},${name}${mayAll.has(name) ? ',system:masters' : ''}`,
  );
  const files: Record<string, string> = {
    'ca.crt': ca.cert,
    'serving.crt': serving.cert,
    'serving.key': serving.key,
    'front-proxy-ca.crt': frontProxyCa.cert,
    'front-proxy.crt': frontProxy.cert,
    'front-proxy.key': frontProxy.key,
    'service-accounts.key': serviceAccounts.privateKey,
    'service-accounts.pub': serviceAccounts.publicKey,
    'audit-policy.yaml': AUDIT_POLICY,
    'tokens.csv': `${tokens.join('\n')}\n`,
  };
  for (const { name, token } of users) {
    const connection: Connection = { server, ca: ca.cert, token };
    const file = name === CONTROLLER_MANAGER ? 'controller-manager' : name;
    files[`${file}.kubeconfig`] = writeKubeconfigText(name, connection);
  }
  await Promise.all(
    Object.entries(files).map(([name, text]) =>
      writeFile(join(dataDir, name), text, { mode: 0o600 }),
    ),
  );
  const adminToken = users.find(({ name }) => name === 'admin')?.token ?? '';
  return { dataDir, ports: { etcd, etcdPeer, apiServer }, ca: ca.cert, adminToken };
}

/** Who, what, when and the answer, without bodies: enough to prove that somebody wrote nothing. */
const AUDIT_POLICY = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived, ResponseStarted]
rules:
- level: None
  users: ["system:apiserver"]
- level: None # most of the log; who wrote something is what tests ask
  userGroups: ["system:serviceaccounts:kube-system"]
  verbs: [get, list, watch]
- level: None
  users: ["admin", "system:kube-controller-manager"]
  verbs: [get, list, watch]
- level: Metadata
`;
