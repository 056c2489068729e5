import { readFileSync, statSync } from 'node:fs';
import { delimiter, dirname, join, resolve } from 'node:path';
import { load } from 'js-yaml';
import { ActionError } from '../base/errors.ts';
import { isObject } from '../base/json.ts';
import { refuseContent } from './kubeconfig-content.ts';
import { type Kubeconfig, mergeKubeconfigs, toKubeconfig } from './kubeconfig-merge.ts';

export interface KubeconfigSearch {
  /** From the input; then nothing else is looked at. */
  explicit: string | undefined;
  env: Readonly<Record<string, string | undefined>>;
  homeDir: string;
}

export interface FoundKubeconfig {
  config: Kubeconfig;
  /** The files that were read, for messages. */
  source: string;
  /** What was looked at and gave nothing, as clauses. */
  tried: string[];
}

/** In kubectl's order; `config` is empty when no file has anything in it. */
export function findKubeconfig(search: KubeconfigSearch): FoundKubeconfig {
  if (search.explicit !== undefined && search.explicit !== '') {
    return explicitFile(search.explicit, search.homeDir);
  }
  const variable = search.env['KUBECONFIG'] ?? '';
  if (variable !== '') return listedFiles(variable);
  const home = join(search.homeDir, '.kube', 'config');
  const config = readKubeconfig(home);
  return found(config === undefined ? [] : [config], home, [
    'KUBECONFIG is not set',
    `${home} ${config === undefined ? 'does not exist' : 'is empty'}`,
  ]);
}

function explicitFile(value: string, homeDir: string): FoundKubeconfig {
  refuseContent(value, 'the input "kubeconfig"');
  // Nobody expands the tilde of a workflow's `with:` or of `--kubeconfig=~/x`.
  const file = resolve(value.replace(/^~(?=[/\\])/, homeDir));
  const config = readKubeconfig(file);
  if (config === undefined) {
    throw new ActionError('kube-config', `cannot read kubeconfig ${file}: no such file`, {
      hint: 'Check the path; in a container job the file must exist inside the container',
    });
  }
  return found([config], file, [`${file} is empty`]);
}

function listedFiles(variable: string): FoundKubeconfig {
  refuseContent(variable, 'the environment variable KUBECONFIG');
  const files = [...new Set(variable.split(delimiter).filter((file) => file !== ''))];
  const configs: Kubeconfig[] = [];
  const read: string[] = [];
  const tried: string[] = [];
  for (const file of files.map((name) => resolve(name))) {
    const config = readKubeconfig(file);
    tried.push(`${file} (from KUBECONFIG) ${config === undefined ? 'does not exist' : 'is empty'}`);
    if (config === undefined) continue;
    configs.push(config);
    read.push(file);
  }
  return found(configs, read.join(', '), tried);
}

function found(configs: readonly Kubeconfig[], source: string, tried: string[]): FoundKubeconfig {
  return { config: mergeKubeconfigs(configs), source, tried };
}

/** `undefined` when there is no such file. Parse errors are not quoted: they contain the text. */
function readKubeconfig(file: string): Kubeconfig | undefined {
  const text = readText(file);
  if (text === undefined) return undefined;
  if (hasNoContent(text)) return mergeKubeconfigs([]);
  let document: unknown;
  try {
    document = load(text);
  } catch (error) {
    throw new ActionError(
      'kube-config',
      `cannot read kubeconfig ${file}: not valid YAML${lineOf(error)}`,
    );
  }
  if (!isObject(document)) {
    throw new ActionError('kube-config', `cannot read kubeconfig ${file}: it is not a kubeconfig`, {
      hint: 'Write the kubeconfig as YAML or JSON text; content in base64 must be decoded first',
    });
  }
  return toKubeconfig(document, file, (path) => resolve(dirname(file), path));
}

/** kubectl reads it as a kubeconfig without entries; the parser refuses some of these texts. */
function hasNoContent(text: string): boolean {
  return text.split('\n').every((line) => /^\ufeff?(\s*(#.*)?|---|null|\{\})\s*$/.test(line));
}

function readText(file: string): string | undefined {
  try {
    if (statSync(file).isDirectory()) {
      throw new ActionError('kube-config', `cannot read kubeconfig ${file}: it is a folder`);
    }
    const bytes = readFileSync(file);
    // What "> config" writes in Windows PowerShell.
    const isUtf16 = bytes[0] === 0xff && bytes[1] === 0xfe;
    return bytes.toString(isUtf16 ? 'utf16le' : 'utf8');
  } catch (error) {
    if (error instanceof ActionError) throw error;
    const code = error instanceof Error && 'code' in error ? error.code : undefined;
    if (code === 'ENOENT' || code === 'ENOTDIR') return undefined;
    const why = code === 'EACCES' ? 'permission denied' : `the system says ${String(code)}`;
    throw new ActionError('kube-config', `cannot read kubeconfig ${file}: ${why}`, {
      cause: error,
    });
  }
}

function lineOf(error: unknown): string {
  const mark = error instanceof Error && 'mark' in error ? error.mark : undefined;
  const line = isObject(mark) ? mark['line'] : undefined;
  return typeof line === 'number' ? ` (line ${line + 1})` : '';
}
