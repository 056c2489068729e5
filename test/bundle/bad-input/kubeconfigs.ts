import { tmpdir } from 'node:os';
import { kubeconfigText } from '../../stub/kubeconfig-text.ts';
import type { ActionCase } from './case.ts';

const SERVER = 'http://127.0.0.1:9';

function file(what: string, content: string, says: RegExp): ActionCase {
  return { what, inputs: ({ bench }) => ({ kubeconfig: bench.file(content) }), says };
}

const CONTENT = kubeconfigText({ server: SERVER, user: { token: 'pl4nt3d-token-in-content' } });
/** Each line ten times the one before. */
const BOMB = `a: &a [x,x,x,x,x,x,x,x,x,x]\n${'bcdefghij'
  .split('')
  .map((name, at) => {
    const before = `*${'abcdefghij'[at]}`;
    return `${name}: &${name} [${Array(10).fill(before).join(',')}]`;
  })
  .join('\n')}\n`;

/** Where the kubeconfig should be, and what is in it: what is wrong in ways that no unit or adapter test shows. */
export const KUBECONFIGS: readonly ActionCase[] = [
  {
    what: 'a folder as kubeconfig',
    inputs: () => ({ kubeconfig: tmpdir() }),
    says: /it is a folder/,
  },
  {
    what: 'a device as kubeconfig',
    inputs: () => ({ kubeconfig: '/dev/zero' }),
    says: /cannot read kubeconfig \/dev\/zero: it is a device or a pipe and not a file/,
  },
  {
    what: 'a pipe as kubeconfig',
    inputs: ({ bench }) => ({ kubeconfig: bench.pipe() }),
    says: /it is a device or a pipe and not a file/,
  },
  file('a file of more than 10 MB', 'x'.repeat(10 * 1024 * 1024 + 1), /it is larger than 10 MB/),
  {
    what: 'the variables of a pod without its files',
    inputs: () => ({ kubeconfig: '' }),
    env: () => ({ KUBERNETES_SERVICE_HOST: '10.0.0.1', KUBERNETES_SERVICE_PORT: '443' }),
    says: /found no cluster to talk to: .*no service account of a pod was found/,
  },
  file(
    'base64 in the file',
    Buffer.from(CONTENT).toString('base64'),
    /not valid YAML of a kubeconfig/,
  ),
  file('YAML that grows', BOMB, /found no cluster|not valid YAML|no current-context/),
  file('a YAML tag that runs code', 'a: !!js/function "function(){}"\n', /not valid YAML/),
];
