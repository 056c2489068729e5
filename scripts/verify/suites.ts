/** What `.ci/run` does not run, because it takes long or says little about most changes: `npm run verify` does. */
export interface Suite {
  name: string;
  about: string;
  /** Of scripts/verify/tests.ts; or else `command`, which is one test. */
  tests?: readonly string[];
  command?: readonly string[];
  /** Goes before the tests. */
  first?: string;
  /** Environment of each part: what is done with one part is not done again after a stop. */
  parts?: readonly Record<string, string>[];
  /** A part that takes longer is ended. */
  limitMinutes: number;
  /** Needs a kind cluster: its kubeconfig is in CLUSTER_KUBECONFIG, or KIND_UP starts one. */
  kind?: true;
  /** Beginnings of the paths that can change what comes of it. */
  touchedBy: readonly string[];
}

const LIVE = '--config=vitest.live.config.ts';
const READS = ['src/kubernetes/', 'src/observe/', 'src/model/', 'src/base/', 'src/inputs.ts'];
const EXPLAINS = [...READS, 'src/diagnose/', 'src/gate/', 'src/report/', 'test/cluster/'];
const FORESEES = [...EXPLAINS, 'src/forecast/'];
const RUNS = ['src/', 'package-lock.json', 'test/bundle/', 'test/stub/'];

function inParts(count: number, more: Record<string, string> = {}): Record<string, string>[] {
  return Array.from({ length: count }, (_, index) => ({
    ...more,
    SCENARIO_PART: `${index + 1}/${count}`,
  }));
}

export const SUITES: readonly Suite[] = [
  {
    name: 'tools',
    about: 'what other programs think of reports, manifests and pipelines',
    tests: [
      '--config=vitest.config.ts',
      ...['release', 'deploy', 'promtool'].map((file) => `test/unit/${file}.test.ts`),
      ...['nasty', 'commands', 'limits'].map((file) => `test/unit/report-${file}.test.ts`),
      ...['proxies', 'bundle', 'other-ci'].map((file) => `test/bundle/${file}.test.ts`),
    ],
    first: 'scripts/verify/install-tools',
    limitMinutes: 30,
    touchedBy: ['src/report/', 'src/publish/', 'deploy/', 'docs/', 'action.yml', ...RUNS],
  },
  {
    name: 'nodes',
    about: 'the bundle on the oldest and the newest Node',
    command: ['npm', 'run', 'test:nodes'],
    limitMinutes: 20,
    touchedBy: RUNS,
  },
  {
    name: 'changes',
    about: 'forcing, ordered deletion, what stays behind, rights, faults',
    tests: [LIVE, ...['force', 'ordered', 'left-behind', 'sweep', 'faults', 'rbac'].map(ofCluster)],
    limitMinutes: 90,
    touchedBy: [...FORESEES, 'src/force/', 'rbac/'],
  },
  {
    name: 'scenarios',
    about: 'the catalogue on Kubernetes 1.36.3',
    tests: [LIVE, ofCluster('scenarios')],
    parts: inParts(8),
    limitMinutes: 90,
    touchedBy: EXPLAINS,
  },
  {
    name: 'remedies',
    about: 'every command that the reports advise, followed to the letter',
    tests: [LIVE, 'test/cluster/remedies.test.ts'],
    parts: inParts(8),
    limitMinutes: 120,
    touchedBy: EXPLAINS,
  },
  {
    name: 'forecasts',
    about: 'forecasts of the catalogue, compared with the deletion',
    tests: [LIVE, ofCluster('forecast')],
    parts: inParts(8),
    limitMinutes: 120,
    touchedBy: FORESEES,
  },
  {
    name: 'foreseen',
    about: 'situations that only a forecast has to get right',
    tests: [LIVE, ofCluster('foreseen')],
    limitMinutes: 90,
    touchedBy: FORESEES,
  },
  {
    name: 'kubernetes-1.32',
    about: 'the catalogue on Kubernetes 1.32.2',
    tests: [LIVE, ofCluster('scenarios')],
    parts: inParts(8, { CLUSTER_VERSION: '1.32.2' }),
    limitMinutes: 90,
    touchedBy: EXPLAINS,
  },
  {
    name: 'operators',
    about: 'real operators, at work, broken and gone',
    tests: [LIVE, 'test/operators/'],
    parts: ['snapshot-controller,cloud-controller-manager,rabbitmq', 'cert-manager'].map(
      (names, index) => ({
        OPERATORS: names,
        OPERATORS_RESULTS: `coverage/operators-${index + 1}`,
      }),
    ),
    limitMinutes: 60,
    touchedBy: [...EXPLAINS, 'test/operators/'],
  },
  {
    name: 'kind',
    about: 'the catalogue, and what needs a kubelet, on kind',
    tests: [LIVE, ofCluster('scenarios')],
    parts: inParts(4),
    limitMinutes: 120,
    kind: true,
    touchedBy: [...EXPLAINS, 'Dockerfile', 'deploy/', 'rbac/'],
  },
  {
    name: 'image',
    about: 'the container image, on kind',
    tests: [LIVE, ofCluster('image')],
    limitMinutes: 30,
    kind: true,
    touchedBy: [...RUNS, 'Dockerfile', 'deploy/', 'rbac/'],
  },
  {
    name: 'ablation',
    about: 'conditions of the owner model that no recording needs',
    command: ['npm', 'run', 'ablate', '--', 'src/diagnose/owner', '--limit', '10'],
    limitMinutes: 180,
    touchedBy: ['src/diagnose/', 'src/forecast/', 'test/fixtures/snapshots/'],
  },
  {
    name: 'mutation',
    about: 'small faults that no test notices; other faults each time',
    command: ['npm', 'run', 'mutate', '--', '--count', '200', '--minutes', '40', '--limit', '25'],
    limitMinutes: 60,
    touchedBy: ['src/diagnose/', 'src/force/', 'src/gate/', 'src/publish/'],
  },
];

function ofCluster(file: string): string {
  return `test/cluster/${file}.cluster.test.ts`;
}
