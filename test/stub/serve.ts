import { onTestFinished } from 'vitest';
import { type ApiServer, type ApiServerOptions, startApiServer } from './api-server.ts';
import { type Github, type GithubOptions, startGithub } from './github.ts';

/** Servers that stop at the end of the test that started them. */

export async function serveCluster(options: ApiServerOptions): Promise<ApiServer> {
  const server = await startApiServer(options);
  onTestFinished(() => server.close());
  return server;
}

export async function serveGithub(options: GithubOptions = {}): Promise<Github> {
  const github = await startGithub(options);
  onTestFinished(() => github.close());
  return github;
}
