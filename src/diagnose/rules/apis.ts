import { shortQuote } from '../../base/text.ts';
import { apiVersionOf } from '../../model/facts/metadata.ts';
import { itemsIn } from '../../model/read.ts';
import type { ApiServiceFacts } from '../../model/snapshot.ts';
import { unansweredCall } from '../backends.ts';
import { fixRemedy, kubectl, nameArgs } from '../commands.ts';
import { extensionApis } from '../content.ts';
import { type Context, willBeDeleted } from '../context.ts';
import { callFailure } from '../error-texts.ts';
import type { RuleResult } from '../results.ts';

type GroupVersion = Pick<ApiServiceFacts, 'group' | 'version'>;

export function isSameVersion(a: GroupVersion, b: GroupVersion): boolean {
  return apiVersionOf(a) === apiVersionOf(b);
}

/**
 * Finds API groups that do not respond. The namespace controller needs a complete discovery to finish, so one of
 * them holds every namespace (namespaced_resources_deleter.go, deleteAllContent). Available=False alone is no proof, nor is
 * Available=True: discovery asks the backend for /apis, the availability check for /apis/<group>/<version>.
 */
export function failingApis(context: Context): RuleResult[] {
  // The gate's own discovery decides; the namespace's condition, up to a minute old, is added as evidence, and stands
  // alone only when discovery could not be read.
  const { discovery } = context.now;
  const said = context.conditions.discoveryFailures;
  const found = discovery.ok ? discovery.value.failedGroups : said;
  // In a forecast, a group whose backend is deleted with the namespace keeps every deletion from finishing.
  const going = extensionApis(context)
    .filter(({ service }) => willBeDeleted(context, service.namespace))
    .filter((one) => !found.some((other) => isSameVersion(one, other)));
  return [...found, ...going].map((one) => {
    const own = 'reason' in one ? [`discovery of ${apiVersionOf(one)}: ${one.reason}`] : [];
    const told = said
      .filter((other) => isSameVersion(one, other))
      .map(({ error }) => `the namespace's condition NamespaceDeletionDiscoveryFailure: ${error}`);
    return failingApi(context, one, [...own, ...told]);
  });
}

function failingApi(context: Context, group: GroupVersion, reasons: readonly string[]): RuleResult {
  const api = itemsIn(context.now.cluster.apiServices).find((one) => isSameVersion(one, group));
  const name = apiVersionOf(group);
  const subject = {
    apiVersion: 'apiregistration.k8s.io/v1',
    kind: 'APIService',
    name: `${group.version}.${group.group}`,
  };
  const { available, service } = api ?? {};
  const isGoing = willBeDeleted(context, service?.namespace);
  const isDown = isGoing || available?.status !== 'True';
  if (api === undefined || (service === undefined && !isDown)) {
    const text =
      'If the control plane is being upgraded, wait: until that is done, its API servers serve different versions. Otherwise read the log of kube-apiserver';
    return {
      ...{ code: 'discovery-failed', subject, blocksNamespace: true },
      message: 'cannot be discovered',
      evidence: [...reasons, 'no APIService for it could be read'],
      remedies: [fixRemedy(text)],
    };
  }
  const failure = isDown ? callFailure(available?.message ?? '') : 'other';
  const answers = failure === 'error-status';
  const reason = available?.status === 'True' ? '' : available?.message;
  const quote = reason && (answers || failure === 'other') ? shortQuote(reason) : undefined;
  const does = isGoing ? 'will stop responding' : answers ? 'is not available' : 'does not respond';
  const state = isDown ? does : 'cannot be discovered, although its condition Available is True';
  const condition =
    available === undefined
      ? 'the API server has never checked it'
      : `Available=${available.status} (${available.reason}): ${available.message}`;
  return unansweredCall(context, {
    ...{ subject, failure, quote, service, blocksNamespace: true },
    code: isDown ? 'apiservice-unavailable' : 'discovery-failed',
    says: (server) =>
      `${state}: its backend is ${server}${quote === undefined ? '' : `: ${quote}`}`,
    evidence: [condition, ...reasons],
    since: isDown ? available?.since : undefined,
    stop: {
      text: `delete APIService ${api.name}`,
      command: kubectl('delete', ...nameArgs('apiservice', api.name)),
      risk: `the API ${name} disappears for the whole cluster`,
    },
  });
}
