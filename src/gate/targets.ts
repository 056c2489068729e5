import { ActionError, InputError } from '../base/errors.ts';
import { formatDuration, serverTime } from '../base/time.ts';
import type { Inputs } from '../inputs.ts';
import { collectItems } from '../kubernetes/api.ts';
import { namespaceFacts } from '../model/facts/metadata.ts';
import type { NotInspected } from '../model/finding.ts';
import { type FailureKind, type Read, type ReadFailure, readOk } from '../model/read.ts';
import type { NamespaceFacts } from '../model/snapshot.ts';
import { NAMESPACES_PATH } from '../observe/namespaces.ts';
import { ANCHOR_NAMESPACES, confirmEnds, REPEAT_MS } from './confirm.ts';
import type { Run, Target } from './run.ts';

const MAX_TARGETS = 1_000;

/** Those named by the input, and those that match both the selector and `terminating`. Each is read once, which fixes its UID. */
export async function findTargets(
  read: Map<string, Read<NamespaceFacts | undefined>>,
  run: Run,
): Promise<{ targets: Target[]; leftOut: NotInspected[] }> {
  const { inputs, log, signal } = run;
  const selected = await selectNamespaces(run);
  for (const { name } of selected) read.delete(name);
  const missing = [...read].flatMap(([name, got]) => (got.ok && !got.value ? [{ name }] : []));
  for (const [name, got] of await confirmEnds(missing, run)) read.set(name, got);
  if (signal.aborted) return { targets: [], leftOut: [] };
  const named = [...read].map(([name, got]): Target => {
    if (!got.ok) throw cannotStartError('get', `namespace "${name}"`, got.failure, run);
    return { name, first: got.value };
  });
  if (inputs.terminating !== undefined && selected.length === 0)
    log.notice(`found no ${describedSelection(inputs)}: there is nothing to do`);
  const all = [...named, ...selected.map((first) => ({ name: first.name, first }))];
  const targets = all.slice(0, MAX_TARGETS);
  if (targets.length === all.length) return { targets, leftOut: [] };
  const what = `${all.length - MAX_TARGETS} more namespaces`;
  const reason = `of ${all.length} only ${MAX_TARGETS} are examined in one run`;
  log.warning(`${what}: ${reason}`);
  return { targets, leftOut: [{ what, reason }] };
}

/** An empty list counts only after the whole list was read too, and then a second time. */
async function selectNamespaces(run: Run): Promise<NamespaceFacts[]> {
  const { anchor, api, clock, inputs, signal } = run;
  const { selector, terminating } = inputs;
  if (selector === '' && terminating === undefined) return [];
  const now = serverTime(run);
  const isWanted = ({ deletionTimestamp }: NamespaceFacts): boolean =>
    terminating === undefined ||
    (deletionTimestamp !== undefined && now - Date.parse(deletionTimestamp) >= terminating.forMs);
  const list = async (labelSelector: string): Promise<Read<NamespaceFacts[]>> => {
    const options = { signal, ...(labelSelector === '' ? {} : { labelSelector }) };
    const listed = await api.list(NAMESPACES_PATH, collectItems(namespaceFacts), options);
    return listed.ok ? readOk(listed.value.kept) : listed;
  };
  const isAnchor = ({ name, uid }: NamespaceFacts): boolean =>
    anchor ? name === anchor.name && uid === anchor.uid : ANCHOR_NAMESPACES.includes(name);
  let listed = await list(selector);
  if (listed.ok && !listed.value.some(isWanted)) {
    await clock.sleep(REPEAT_MS, signal);
    const whole = await list('');
    if (whole.ok && !whole.value.some(isAnchor)) {
      const message = `the list of all namespaces lacks ${anchor?.name ?? ANCHOR_NAMESPACES.join(' and ')}: it is not complete, or another cluster's`;
      throw cannotStartError('list', 'namespaces', { kind: 'unreadable', message }, run);
    }
    listed = whole.ok && selector !== '' ? await list(selector) : whole;
  }
  if (listed.ok) return listed.value.filter(isWanted);
  if (signal.aborted) return [];
  const { failure } = listed;
  if (failure.status !== 400)
    throw cannotStartError('list', describedSelection(inputs), failure, run);
  const message = `input "selector" is "${selector}", which the API server does not understand: ${failure.message}`;
  throw new InputError(message);
}

/** "namespaces with the labels "app=preview" that have been terminating for at least 10m". */
function describedSelection({ selector, terminating }: Inputs): string {
  const labels = selector && ` with the labels "${selector}"`;
  const least = terminating?.forMs && ` for at least ${formatDuration(terminating.forMs)}`;
  const age = terminating && ` that ${least ? `have been terminating${least}` : 'are terminating'}`;
  return `namespaces${labels}${age ?? ''}`;
}

const FAILING = 'Try again; if it persists, look at the state of the API server.';
const ADVICE: Partial<Record<FailureKind, string>> = {
  forbidden:
    'Grant this identity "get", "list" and "watch" on namespaces by a ClusterRole and a ClusterRoleBinding, with the rule { apiGroups: [""], resources: ["namespaces"], verbs: ["get", "list", "watch"] }; a Role inside the namespace is deleted together with it.',
  unauthorized:
    'The credentials of this context are refused: they may have expired, or belong to another cluster or to an identity that this cluster does not know (on EKS: one without an access entry).',
  'server-error': FAILING,
  throttled: FAILING,
};
const UNREACHABLE =
  'Check that the kubeconfig has the address and the certificate authority of the right cluster, that the runner can reach it (firewall, VPN, proxy), and that a Kubernetes API server answers there.';

function cannotStartError(
  verb: string,
  what: string,
  { kind, message }: ReadFailure,
  { api: { target } }: Run,
): ActionError {
  const { context, isAnonymous, server } = target;
  const none = `The user of context "${context}" has no credentials in the kubeconfig, so none were sent.`;
  // A proxy may add credentials: then the API server names another user.
  const isUnknown = kind === 'unauthorized' || message.includes('"system:anonymous"');
  const hint = isAnonymous && isUnknown ? none : (ADVICE[kind] ?? UNREACHABLE);
  return new ActionError(`cannot ${verb} ${what} on ${server}: ${message}`, hint);
}
