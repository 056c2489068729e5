import { beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest';
import { base64, createAuthority, issue, type KeyPair } from '../stub/certificates.ts';
import { connectTo, failureIn, temporaryFolder, valueIn, writeFile } from './connect-to.ts';
import { json, namespace } from './servers/answers.ts';
import { startServer } from './servers/http-server.ts';

const PATH = '/api/v1/namespaces/demo';
const answer = json(namespace('demo'));

let authority: KeyPair;
let stranger: KeyPair;
let serverPair: KeyPair;

beforeAll(async () => {
  authority = await createAuthority('cluster-ca');
  stranger = await createAuthority('some-other-ca');
  serverPair = await issue(authority);
});

function trusting(ca: KeyPair): { 'certificate-authority-data': string } {
  return { 'certificate-authority-data': base64(ca.cert) };
}

describe('the certificate of the server', () => {
  test('is accepted from the authority in the kubeconfig', async () => {
    const server = await startServer(answer, serverPair);
    const api = await connectTo(server.url, { cluster: trusting(authority) });
    expect(valueIn(await api.get(PATH))).toEqual(namespace('demo'));
  });

  test('is accepted from an authority in a file beside the kubeconfig', async () => {
    const server = await startServer(answer, serverPair);
    const folder = temporaryFolder();
    writeFile(folder, 'ca.crt', authority.cert);
    const api = await connectTo(server.url, {
      folder,
      cluster: { 'certificate-authority': 'ca.crt' },
    });
    valueIn(await api.get(PATH));
  });

  test('is refused without a certificate authority, unless a public one signed it', async () => {
    const server = await startServer(answer, serverPair);
    const result = failureIn(await (await connectTo(server.url)).get(PATH));
    expect(result.message).toBe('unknown certificate authority');
  });

  test('is verified for tls-server-name', async () => {
    const server = await startServer(
      answer,
      await issue(authority, { hosts: ['api.example.com'] }),
    );
    const cluster = { ...trusting(authority), 'tls-server-name': 'api.example.com' };
    valueIn(await (await connectTo(server.url, { cluster })).get(PATH));
  });

  test('is not verified with insecure-skip-tls-verify', async () => {
    const server = await startServer(answer, await issue(stranger, { isExpired: true }));
    const cluster = { 'insecure-skip-tls-verify': true };
    valueIn(await (await connectTo(server.url, { cluster })).get(PATH));
  });

  test('is verified whatever NODE_TLS_REJECT_UNAUTHORIZED says', async () => {
    vi.stubEnv('NODE_TLS_REJECT_UNAUTHORIZED', '0');
    // Node warns about the variable itself, on the first connection.
    const warnings = vi.spyOn(process, 'emitWarning').mockImplementation(() => undefined);
    onTestFinished(() => {
      vi.unstubAllEnvs();
      warnings.mockRestore();
    });
    const server = await startServer(answer, serverPair);
    const api = await connectTo(server.url, { cluster: trusting(stranger) });
    expect(failureIn(await api.get(PATH)).message).toBe('unknown certificate authority');
  });
});

describe('a client certificate', () => {
  test('is sent from files beside the kubeconfig', async () => {
    const server = await startServer(answer, { ...serverPair, clientCa: authority.cert });
    const client = await issue(authority, { commonName: 'ci-robot' });
    const folder = temporaryFolder();
    writeFile(folder, 'me.crt', client.cert);
    writeFile(folder, 'me.key', client.key);
    const api = await connectTo(server.url, {
      folder,
      cluster: trusting(authority),
      user: { 'client-certificate': 'me.crt', 'client-key': 'me.key' },
    });
    valueIn(await api.get(PATH));
    expect(server.requests[0]?.clientName).toBe('ci-robot');
  });

  test.each([
    { what: 'a key of another certificate', key: () => stranger.key },
    {
      what: 'a damaged key',
      key: () => '-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----',
    },
  ])('with $what is refused before anything is sent', async ({ key }) => {
    const client = await issue(authority, { commonName: 'ci-robot' });
    const user = {
      'client-certificate-data': base64(client.cert),
      'client-key-data': base64(key()),
    };
    await expect(connectTo('https://127.0.0.1:1', { user })).rejects.toMatchObject({
      message: expect.stringMatching(/^the certificates of context "x" cannot be used: /),
    });
  });
});
