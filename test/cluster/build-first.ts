import { buildControlPlane } from './build.ts';
import { foreignKubeconfig, wantedVersion } from './clusters.ts';

/** The first build takes minutes: it is no part of the time of whichever tests come first. */
export async function setup(): Promise<void> {
  if (foreignKubeconfig() === undefined) await buildControlPlane(wantedVersion(), console.log);
}
