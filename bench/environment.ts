import { execFileSync } from 'node:child_process';
import { cpus, loadavg, totalmem } from 'node:os';
import { REPOSITORY } from '../test/stub/action-yml.ts';
import type { Environment } from './results.ts';

export function readEnvironment(kubernetes: string, kubectl: string): Environment {
  return {
    cores: cpus().length,
    cpu: cpus()[0]?.model.trim() ?? 'unknown',
    memoryGiB: Math.round(totalmem() / 1024 ** 3),
    platform: `${process.platform} ${process.arch}`,
    node: process.versions.node,
    kubernetes,
    kubectl: kubectl.replace(/^v/, ''),
    loadAverage: loadavg()[0] ?? 0,
    commit: commit(),
  };
}

function commit(): string {
  const git = (...args: string[]): string =>
    execFileSync('git', args, { cwd: REPOSITORY, encoding: 'utf8' }).trim();
  try {
    const changed = git('status', '--porcelain', '--', 'src', 'dist') === '' ? '' : ' with changes';
    return `${git('rev-parse', '--short=10', 'HEAD')}${changed}`;
  } catch {
    return 'unknown';
  }
}
