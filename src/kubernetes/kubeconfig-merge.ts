import { ActionError } from '../base/errors.ts';
import { arrayAt, at, isObject, type JsonObject, stringAt } from '../base/json.ts';

/** A kubeconfig as maps, the way kubectl thinks of it; relative paths are resolved already. */
export interface Kubeconfig {
  clusters: Map<string, JsonObject>;
  users: Map<string, JsonObject>;
  contexts: Map<string, JsonObject>;
  currentContext: string;
}

/**
 * kubectl's rule: the first file that sets a value or a name wins, and entries are never mixed: of two
 * users "red" the second is ignored as a whole.
 */
export function mergeKubeconfigs(configs: readonly Kubeconfig[]): Kubeconfig {
  return {
    clusters: firstWins(configs.map((config) => config.clusters)),
    users: firstWins(configs.map((config) => config.users)),
    contexts: firstWins(configs.map((config) => config.contexts)),
    currentContext: configs.find((config) => config.currentContext !== '')?.currentContext ?? '',
  };
}

function firstWins(maps: readonly Map<string, JsonObject>[]): Map<string, JsonObject> {
  const merged = new Map<string, JsonObject>();
  for (const map of maps) {
    for (const [name, entry] of map) if (!merged.has(name)) merged.set(name, entry);
  }
  return merged;
}

/** `resolve` makes a path absolute that is relative to the file's folder. */
export function toKubeconfig(
  document: JsonObject,
  file: string,
  resolve: (path: string) => string,
): Kubeconfig {
  return {
    clusters: entries(document, 'clusters', 'cluster', file, (cluster) =>
      resolved(cluster, ['certificate-authority'], resolve),
    ),
    users: entries(document, 'users', 'user', file, (user) => {
      const paths = ['client-certificate', 'client-key', 'tokenFile', 'token-file'];
      const withPaths = resolved(user, paths, resolve);
      const exec = at(user, 'exec');
      // A bare command is looked up on PATH; only one with a folder in it is relative to the file.
      if (!isObject(exec) || !/[/\\]/.test(stringAt(exec, 'command') ?? '')) return withPaths;
      return { ...withPaths, exec: resolved(exec, ['command'], resolve) };
    }),
    contexts: entries(document, 'contexts', 'context', file, (context) => context),
    currentContext: stringAt(document, 'current-context') ?? '',
  };
}

function entries(
  document: JsonObject,
  list: string,
  field: string,
  file: string,
  prepare: (entry: JsonObject) => JsonObject,
): Map<string, JsonObject> {
  const map = new Map<string, JsonObject>();
  for (const item of arrayAt(document, list)) {
    const name = stringAt(item, 'name');
    if (name === undefined) {
      throw new ActionError(
        'kube-config',
        `cannot use kubeconfig ${file}: an entry of "${list}" has no name`,
      );
    }
    if (map.has(name)) {
      throw new ActionError(
        'kube-config',
        `cannot use kubeconfig ${file}: "${list}" has two entries named "${name}"`,
      );
    }
    const entry = at(item, field);
    map.set(name, prepare(isObject(entry) ? entry : {}));
  }
  return map;
}

function resolved(
  entry: JsonObject,
  fields: readonly string[],
  resolve: (path: string) => string,
): JsonObject {
  const copy = { ...entry };
  for (const field of fields) {
    const path = stringAt(entry, field);
    if (path !== undefined && path !== '') copy[field] = resolve(path);
  }
  return copy;
}
