import type { TerminalCase } from './case.ts';

function usage(what: string, args: string[], says: RegExp): TerminalCase {
  return { what, args: () => args, says, exitCode: 3 };
}

/** The unit tests of the arguments have every way of being wrong. */
export const ARGUMENTS: readonly TerminalCase[] = [
  usage('an option that does not exist', ['demo', '--tiemout', '5m'], /unknown option --tiemout/),
  usage('no namespace', ['--now'], /"namespace" and "selector" are both empty/),
  {
    what: 'a kubeconfig that is not there',
    args: () => ['demo', '--kubeconfig', '/nonexistent/config'],
    says: /found no cluster to talk to: \/nonexistent\/config does not exist/,
    exitCode: 2,
  },
  {
    what: 'a server that nobody listens on',
    args: ({ bench }) => [
      'demo',
      '--kubeconfig',
      bench.kubeconfig({ server: 'http://127.0.0.1:9' }),
    ],
    says: /cannot get namespace "demo" on http:\/\/127\.0\.0\.1:9: connection refused/,
    exitCode: 2,
  },
  {
    what: 'a folder for reports that cannot be written',
    args: ({ kubeconfig }) => [
      'never-existed',
      '--kubeconfig',
      kubeconfig,
      '--report-dir',
      '/dev/null/nope',
    ],
    says: /cannot write the reports to "\/dev\/null\/nope"/,
    exitCode: 2,
  },
];
