import type { Remedy } from '../../model/finding.ts';
import type { CallFailure, ServiceRef } from '../error-kinds.ts';
import { kubectl, named, patchCommand } from './commands.ts';
import { serviceRemedy } from './services.ts';

export interface WebhookConfigurationRef {
  kind: 'ValidatingWebhookConfiguration' | 'MutatingWebhookConfiguration';
  name: string;
  /** Where the webhook stands in `webhooks`, and how many there are. */
  index: number;
  webhooks: number;
}

/** A webhook with `failurePolicy: Fail` that matches and cannot be reached. */
export function admissionWebhookRemedies(input: {
  /** Absent when no configuration could be read that has the webhook. */
  configuration: WebhookConfigurationRef | undefined;
  /** `webhooks[].name` */
  webhook: string;
  cause: CallFailure;
  service?: ServiceRef | undefined;
  /** The Service was in the namespace that is being deleted. */
  insideNamespace: boolean;
}): Remedy[] {
  const { configuration, webhook, cause, service, insideNamespace } = input;
  const back = serviceRemedy(service, undefined, cause);
  if (configuration === undefined) return [back, findConfiguration(webhook)];
  const ignore = ignoreFailures(configuration, webhook);
  const remove = deleteConfiguration(configuration);
  if (!insideNamespace) return [back, ignore, remove];
  return [
    {
      role: 'next',
      text: `Delete ${configuration.kind} ${configuration.name} before the namespace that serves it`,
    },
    ignore,
    {
      ...remove,
      text: 'Delete the configuration: its Service is being deleted with the namespace, so nobody can answer any more',
    },
  ];
}

/** A webhook that is alive and says no. */
export function webhookDeniedRemedies(input: {
  configuration: Pick<WebhookConfigurationRef, 'kind' | 'name'> | undefined;
  webhook: string;
}): Remedy[] {
  const { configuration, webhook } = input;
  return [
    { text: 'Meet the condition that its message names, or ask its owner to let this through' },
    configuration === undefined
      ? findConfiguration(webhook)
      : {
          role: 'look',
          text: 'See which requests it takes; a namespaceSelector or objectSelector can exempt this namespace',
          command: kubectl(
            'get',
            ...named(configurationType(configuration), configuration.name),
            '-o',
            'yaml',
          ),
        },
  ];
}

/** A ValidatingAdmissionPolicy that says no, or whose parameters are missing. */
export function policyDeniedRemedies(input: {
  policy: string;
  binding: string | undefined;
}): Remedy[] {
  const { policy, binding } = input;
  const meet: Remedy = {
    text: 'Meet the condition that its message names, or ask its owner to let this through',
    command: kubectl('get', ...named('validatingadmissionpolicy', policy), '-o', 'yaml'),
  };
  if (binding === undefined) return [meet];
  return [
    meet,
    {
      role: 'or',
      text: 'For the time of this teardown, let the binding only warn; set it back to Deny afterwards',
      command: patchCommand(
        named('validatingadmissionpolicybinding', binding),
        JSON.stringify([
          { op: 'replace', path: '/spec/validationActions', value: ['Warn', 'Audit'] },
        ]),
      ),
      risk: 'until it is set back, the policy refuses nothing wherever this binding applies',
    },
  ];
}

/** The failed call stays failed, but no longer refuses the request. */
function ignoreFailures(configuration: WebhookConfigurationRef, webhook: string): Remedy {
  const path = `/webhooks/${configuration.index}`;
  return {
    role: 'or',
    text: 'Let requests pass while it cannot be reached',
    command: patchCommand(
      named(configurationType(configuration), configuration.name),
      JSON.stringify([
        { op: 'test', path: `${path}/name`, value: webhook },
        { op: 'replace', path: `${path}/failurePolicy`, value: 'Ignore' },
      ]),
    ),
    risk: 'what it would have refused or changed passes, in the whole cluster, until failurePolicy is set back to Fail',
  };
}

function deleteConfiguration(configuration: WebhookConfigurationRef): Remedy {
  const { webhooks } = configuration;
  return {
    role: 'or',
    text: 'If its software was removed for good, delete the configuration',
    command: kubectl('delete', ...named(configurationType(configuration), configuration.name)),
    risk: `${webhooks === 1 ? 'its check stops' : `its ${webhooks} webhooks stop`} for the whole cluster`,
  };
}

/** Names of webhooks are not names of objects: the configuration has to be looked for. */
function findConfiguration(webhook: string): Remedy {
  return {
    role: 'look',
    text: `Find the configuration that has webhook ${webhook}`,
    command: kubectl(
      'get',
      'validatingwebhookconfigurations,mutatingwebhookconfigurations',
      '-o',
      'custom-columns=KIND:.kind,NAME:.metadata.name,WEBHOOKS:.webhooks[*].name',
    ),
  };
}

function configurationType({ kind }: Pick<WebhookConfigurationRef, 'kind'>): string {
  return kind.toLowerCase();
}
