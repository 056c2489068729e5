import { ActionError } from '../base/errors.ts';

/**
 * People put the secret itself where a path belongs. Reading it would work, but the text would then be
 * in process lists, logs of the runner and error messages; the message must not repeat it.
 */
export function refuseContent(value: string, where: string): void {
  const form = isKubeconfigText(value)
    ? 'the text of a kubeconfig'
    : isKubeconfigText(decoded(value))
      ? 'a kubeconfig in base64'
      : undefined;
  if (form === undefined) return;
  const decode = form.endsWith('base64') ? ' | base64 -d' : '';
  throw new ActionError('kube-config', `${where} holds ${form}; it must be the path of a file`, {
    hint:
      'Write it to a file in a step before, for example ' +
      `printf '%s' "$KUBECONFIG_CONTENT"${decode} > "$RUNNER_TEMP/kubeconfig" ` +
      'with the secret in env, and give that path',
  });
}

function isKubeconfigText(text: string): boolean {
  return /(^|[\s{,"'])(apiVersion|clusters|current-context|contexts|users)["']?\s*:/.test(text);
}

function decoded(value: string): string {
  const isBase64 = value.length > 60 && /^[A-Za-z0-9+/\s]+={0,2}\s*$/.test(value);
  return isBase64 ? Buffer.from(value, 'base64').toString('utf8') : '';
}
