import { execFile } from 'node:child_process';
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { promisify } from 'node:util';
import { loadAll } from 'js-yaml';
import { isObject, type Json, type JsonObject } from '../../src/base/json.ts';
import type { Built } from './build.ts';

const run = promisify(execFile);

/** The manifests of products, read or rendered from the files in their Go modules. */
export class Sources {
  readonly #built: Built;
  readonly #render: string;

  constructor(built: Built, render: string) {
    this.#built = built;
    this.#render = render;
  }

  /** All files of a folder, or one file, as `kubectl apply` reads them. */
  async files(module: string, path: string): Promise<JsonObject[]> {
    const root = join(await this.#built.sources(module), path);
    const names = path.endsWith('.yaml') ? [''] : (await readdir(root)).sort();
    const wanted = names.filter((name) => name === '' || /\.ya?ml$/.test(name));
    const texts = await Promise.all(wanted.map((name) => readFile(join(root, name), 'utf8')));
    return texts.flatMap(objectsIn).filter(({ kind }) => kind !== 'Kustomization');
  }

  /** As `kubectl apply --kustomize` of a folder of the module. */
  async kustomized(module: string, base: string): Promise<JsonObject[]> {
    const root = await this.#built.sources(module);
    const folder = await mkdtemp(join(tmpdir(), 'teardown-gate-kustomize-'));
    try {
      const resources = [relative(folder, join(root, base))];
      await writeFile(join(folder, 'kustomization.yaml'), JSON.stringify({ resources }));
      return await this.#rendered(['kustomize', folder]);
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  }

  /** As `helm install`, with what it adds to every object. Hooks are left out. */
  async chart(
    module: string,
    path: string,
    release: string,
    namespace: string,
    values: Record<string, Json> = {},
  ): Promise<JsonObject[]> {
    const folder = join(await this.#built.sources(module), path);
    const settings = Object.entries(values).map(
      ([key, value]) => `${key}=${JSON.stringify(value)}`,
    );
    const objects = await this.#rendered(['chart', folder, release, namespace, ...settings]);
    return objects
      .filter((object) => annotationsOf(object)['helm.sh/hook'] === undefined)
      .map((object) => ({
        ...object,
        metadata: {
          ...(isObject(object['metadata']) ? object['metadata'] : {}),
          annotations: {
            ...annotationsOf(object),
            'meta.helm.sh/release-name': release,
            'meta.helm.sh/release-namespace': namespace,
          },
        },
      }));
  }

  async #rendered(args: readonly string[]): Promise<JsonObject[]> {
    const { stdout } = await run(this.#render, args, { maxBuffer: 64 * 1024 * 1024 });
    return objectsIn(stdout);
  }
}

function objectsIn(text: string): JsonObject[] {
  // Templates may go on right behind the dashes; Helm takes that for a new object, too.
  return (loadAll(text.replaceAll(/^---(?=\S)/gm, '---\n')) as Json[]).filter(isObject);
}

function annotationsOf(object: JsonObject): JsonObject {
  const metadata = object['metadata'];
  const found = isObject(metadata) ? metadata['annotations'] : undefined;
  return isObject(found) ? found : {};
}

/** The same objects, installed into another namespace than the manifests say. */
export function movedTo(objects: JsonObject[], from: string, to: string): JsonObject[] {
  const move = (value: Json, key = ''): Json => {
    if (Array.isArray(value)) return value.map((one) => move(one));
    if (isObject(value)) {
      return Object.fromEntries(
        Object.entries(value).map(([name, one = null]) => [name, move(one, name)]),
      );
    }
    return key === 'namespace' && value === from ? to : value;
  };
  return objects.map((object) => {
    const moved = move(object) as JsonObject;
    const metadata = moved['metadata'];
    return moved['kind'] === 'Namespace' && isObject(metadata)
      ? { ...moved, metadata: { ...metadata, name: to } }
      : moved;
  });
}
