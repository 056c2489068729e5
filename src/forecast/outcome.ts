import { lookUpFinalizer } from '../model/catalogue.ts';
import { groupOf } from '../model/facts/metadata.ts';
import { type Diagnosis, type Finding, findingsOf } from '../model/finding.ts';
import { outcomeOf } from '../model/outcome.ts';

/** Returns the outcome of a forecast; of a terminating namespace, the outcome of its deletion. */
export function forecastOf(diagnosis: Diagnosis, isTerminating = false) {
  if (isTerminating) {
    const now = outcomeOf(diagnosis);
    return now === 'stuck' ? 'would-hang' : now === 'progressing' ? 'clear' : now;
  }
  const roots = findingsOf(diagnosis, diagnosis.rootCauses);
  if (roots.some((root) => !isOpenQuestion(root))) return 'would-hang';
  return roots.length > 0 || diagnosis.notInspected.length > 0 ? 'inconclusive' : 'clear';
}

/** An owner that is most likely missing may run where it is not visible: a hosted control plane, k3s, a cloud. */
function isOpenQuestion({ code, certainty, scope, finalizer = '', subject }: Finding): boolean {
  const { apiVersion, kind } = subject;
  if (certainty !== 'likely' || code !== 'owner-missing' || scope === 'namespace')
    return certainty === 'unknown';
  if (kind === 'CustomResourceDefinition') return false;
  const { workload = [], owner = '' } =
    lookUpFinalizer(finalizer, { kind, group: groupOf(apiVersion) }) ?? {};
  const isInstalled = workload.some((one) => !/^(?:kube|cloud)-controller-manager$/.test(one.name));
  return kind === 'Namespace' || !isInstalled || /\bmanaged\b/.test(owner);
}
