import { arrayAt, stringsAt } from '../../base/json.ts';
import { controllerOf, INSTALLED } from './metadata.ts';
import { each, fieldAt, NAME, shape, text, textIfAny, texts } from './shape.ts';

/**
 * Verbs that identify a controller: it watches its type and changes it, by its own account or by impersonation.
 * The namespace controller deletes objects of all types. Other verbs show nothing.
 */
const VERBS = /^(?:watch|list|update|patch|deletecollection|impersonate|bind|escalate|\*)$/;

/** Resources of a rule that include tokens of ServiceAccounts; `*` includes all subresources. */
export const TOKENS = /^(?:serviceaccounts\/(?:token|\*)|\*(?:\/token)?)$/;
const TASKS = /^(?:pods|jobs|\*)$/;

/** A rule that permits watching or changing objects. */
export type RuleFacts = ReturnType<typeof ruleFacts>;
const ruleFacts = shape({
  apiGroups: texts('apiGroups'),
  resources: texts('resources'),
  resourceNames: texts('resourceNames'),
  // A token of a ServiceAccount lets its holder act as that account. A clean-up may run in a Pod that its owner creates.
  verbs: (rule) => {
    const isCreationKept = stringsAt(rule, 'resources').some(
      (name) => TOKENS.test(name) || TASKS.test(name),
    );
    return stringsAt(rule, 'verbs').filter(
      (verb) => VERBS.test(verb) || (isCreationKept && verb === 'create'),
    );
  },
});

/** Name and namespace of an object of RBAC; without a namespace for a ClusterRole or ClusterRoleBinding. */
const RBAC_OBJECT = { ...NAME, namespace: textIfAny('metadata.namespace') };

export type RoleFacts = ReturnType<typeof roleFacts>;
export const roleFacts = shape({
  ...RBAC_OBJECT,
  ...INSTALLED,
  rules: (role) =>
    arrayAt(role, 'rules')
      .map((rule) => ruleFacts(rule))
      .filter(({ verbs, resources }) => verbs.length > 0 && resources.length > 0),
});

export type BindingFacts = ReturnType<typeof bindingFacts>;
export const bindingFacts = shape({
  ...RBAC_OBJECT,
  /** UID of the object that controls it. */
  owner: (binding) => controllerOf(binding)?.uid,
  role: fieldAt('roleRef', shape({ kind: text('kind'), name: text('name') })),
  subjects: each(
    'subjects',
    shape({ kind: text('kind'), namespace: textIfAny('namespace'), name: text('name') }),
  ),
});
