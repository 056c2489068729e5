import { parseArgs } from 'node:util';
import { isKubernetesVersion, KUBERNETES_VERSIONS, NEWEST_VERSION } from './build.ts';
import { clusterFor } from './clusters.ts';
import { describeNamespace } from './inventory.ts';
import { prepare } from './run-scenario.ts';
import type { Scenario } from './scenario.ts';
import { SCENARIOS } from './scenarios/index.ts';

const USAGE = `npm run cluster                          a control plane with nothing special in it
npm run cluster -- SCENARIO              one with this situation hanging in it
npm run cluster -- SCENARIO… --look      shows what it looks like from outside, and ends
npm run cluster -- --list                the scenarios: id, versions that show it, title
   --version ${KUBERNETES_VERSIONS.join(' | ')}`;

async function main(): Promise<void> {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      list: { type: 'boolean', default: false },
      look: { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
      version: { type: 'string', default: NEWEST_VERSION },
    },
  });
  const { version } = values;
  if (values.help) return console.log(USAGE);
  if (values.list) return listScenarios();
  if (!isKubernetesVersion(version)) {
    throw new Error(`--version is "${version}"; use one of: ${KUBERNETES_VERSIONS.join(', ')}`);
  }
  const chosen = positionals.map(find);
  if (!values.look) await serve(chosen[0], version);
  else for (const one of chosen) await look(one, version);
}

type Version = Parameters<typeof clusterFor>[1];

async function serve(scenario: Scenario | undefined, version: Version): Promise<void> {
  const cluster = await clusterFor(scenario ?? NOTHING, version, console.log);
  const kubeconfig = await cluster.kubeconfig('teardown-gate');
  const admin = cluster.plane?.kubeconfig('admin');
  console.log(`Kubernetes ${version} is up: ${cluster.plane?.server}`);
  if (scenario) {
    console.log(`setting up ${scenario.id}: ${scenario.title} …`);
    const world = await prepare(scenario, cluster);
    console.log((await describeNamespace(cluster.client, world.namespace)).join('\n'));
    console.log(`
as the admin:  export KUBECONFIG=${admin}
               kubectl get namespace ${world.namespace} -o yaml
as the gate:   npx node dist/index.js ${world.namespace} --now --kubeconfig ${kubeconfig}
               npx node dist/index.js ${world.namespace} --timeout 30s --kubeconfig ${kubeconfig}`);
  } else {
    console.log(`\nas the admin:  export KUBECONFIG=${admin}\nas the gate:   ${kubeconfig}`);
  }
  console.log(`logs:          ${cluster.plane?.dataDir}\n\nCtrl-C ends it.`);
  // The servers' pipes keep this process alive; a signal ends them with it.
}

async function look(scenario: Scenario, version: Version): Promise<void> {
  const cluster = await clusterFor(scenario, version, console.log);
  try {
    const world = await prepare(scenario, cluster);
    console.log((await describeNamespace(cluster.client, world.namespace)).join('\n'));
    await world.end();
  } finally {
    await cluster.stop();
  }
}

const NOTHING: Scenario = {
  id: 'nothing',
  title: 'an empty cluster',
  setUp: async () => {},
  expect: () => ({ outcome: 'not-found' }),
};

function listScenarios(): void {
  const width = Math.max(...SCENARIOS.map(({ id }) => id.length));
  for (const { id, title, versions = KUBERNETES_VERSIONS, needs } of SCENARIOS) {
    const where = needs === undefined ? versions.join(', ') : 'kind';
    console.log(`${id.padEnd(width)}  ${where.padEnd(14)}  ${title}`);
  }
}

function find(id: string): Scenario {
  const found = SCENARIOS.find((scenario) => scenario.id.toLowerCase() === id.toLowerCase());
  if (!found) throw new Error(`there is no scenario "${id}"; --list shows them`);
  if (found.needs) throw new Error(`scenario "${id}" needs a ${found.needs}: only kind has it`);
  return found;
}

await main().catch((error: unknown) => {
  console.error(error instanceof Error ? error.message : error);
  console.error(`\n${USAGE}`);
  process.exitCode = 3;
});
