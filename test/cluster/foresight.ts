import { systemClock } from '../../src/base/time.ts';
import { runGate } from '../../src/gate/gate.ts';
import { type InputName, readInputs } from '../../src/inputs.ts';
import type { Mutation } from '../../src/kubernetes/api.ts';
import type { NamespaceResult } from '../../src/model/result.ts';
import { renderText } from '../../src/report/plain-text.ts';
import { viewOf } from '../../src/report/view.ts';
import { recordTo } from '../stage/gate-run.ts';
import { byService, createWebhook } from './admission.ts';
import { endOf, type Write, writesSince } from './audit.ts';
import type { Identity } from './identities.ts';
import { connectGate } from './kubeconfig.ts';
import { service } from './objects.ts';
import { install, type Operator, start } from './scenarios/operator.ts';
import { connect } from './servers/extension-api.ts';
import type { OperatorBehaviour } from './servers/operator-process.ts';
import { startWebhookServer } from './servers/webhook.ts';
import type { World } from './world.ts';

/** The gate in this process, as an identity of its own; the API server's audit log tells what it did. */
const ORDERER: Identity = 'teardown-forecaster';

export interface Ran {
  result: NamespaceResult;
  log: string;
  text: string;
  writes: Write[];
}

/** What happens to a run of the gate on its way. */
export interface Twist {
  identity?: Identity;
  cancelAt?: RegExp;
  /** Between what it has read and what it asks for. */
  beforeSend?: (mutation: Mutation) => Promise<unknown>;
}

export async function gate(
  world: World,
  inputs: Partial<Record<InputName, string>>,
  { identity = ORDERER, cancelAt, beforeSend }: Twist = {},
): Promise<Ran> {
  const cancel = new AbortController();
  const auditLog = world.plane?.auditLog ?? '';
  const from = await endOf(auditLog);
  const kubeconfig = await world.kubeconfig(identity);
  const api = await connectGate(kubeconfig, `gate-of-${world.namespace}`);
  const lines: string[] = [];
  const log = recordTo(lines);
  const line = (text: string): void => {
    log.line(text);
    if (cancelAt?.test(text)) cancel.abort();
  };
  const all: Partial<Record<InputName, string>> = {
    namespace: world.namespace,
    timeout: '60s',
    ...inputs,
  };
  try {
    const run = await runGate(readInputs(all), {
      api: {
        ...api,
        send: async (mutation, options) => {
          await beforeSend?.(mutation);
          return api.send(mutation, options);
        },
      },
      clock: systemClock,
      log: { ...log, line, notice: line, warning: line },
      signal: cancel.signal,
      gateVersion: 'test',
    });
    const writes = await writesSince(auditLog, identity, from);
    const [result] = run.namespaces as [NamespaceResult];
    return {
      result,
      log: lines.join('\n'),
      text: renderText(viewOf(run)),
      writes: writes.filter(
        ({ namespace, name }) => namespace === world.namespace || name === world.namespace,
      ),
    };
  } finally {
    await api.close();
  }
}

export function rootsOf({ diagnosis }: NamespaceResult): string[] {
  return (diagnosis?.findings ?? [])
    .filter(({ id }) => diagnosis?.rootCauses.includes(id))
    .map(({ code, subject, message }) => `${code} ${subject.kind} ${subject.name} ${message}`);
}

/** An operator with its process, in the namespace under test unless told otherwise. */
export async function inside(
  world: World,
  options: Parameters<typeof install>[1] = {},
  behaviour: OperatorBehaviour = {},
): Promise<Operator> {
  if (options?.namespace !== undefined) await world.ensureNamespace(options.namespace);
  const operator = await install(world, options);
  await start(world, operator, behaviour);
  return operator;
}

/** An operator whose webhook, behind a Service beside it, has to answer for every change of its objects. */
export async function guarded(world: World): Promise<Operator> {
  const { namespace } = world;
  const operator = await inside(world);
  const server = await startWebhookServer(world, [`guard.${namespace}.svc`], () => undefined);
  await world.create(service(namespace, 'guard'));
  await connect(world, { namespace, name: 'guard' }, server);
  await createWebhook(world, {
    operations: ['UPDATE', 'DELETE'],
    apiGroup: operator.group,
    resource: '*',
    // Objects outside of namespaces are not subject to its namespaceSelector.
    scope: 'Namespaced',
    clientConfig: { ...byService(namespace, 'guard'), caBundle: server.caBundle },
  });
  return operator;
}
