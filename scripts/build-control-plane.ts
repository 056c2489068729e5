import { buildControlPlane } from '../test/cluster/build.ts';
import { wantedVersion } from '../test/cluster/clusters.ts';

/** Builds the control plane that the tests start (`CLUSTER_VERSION`) before any limit of theirs begins, unless it is there. */
try {
  await buildControlPlane(wantedVersion(), console.log);
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
}
