import { setTimeout as sleep } from 'node:timers/promises';
import { arrayAt, type Json, type JsonObject, stringAt } from '../../src/base/json.ts';

/** What the API server stores, past every API. Keys are told without their common beginning. */
export class Etcd {
  readonly #endpoint: string;

  constructor(endpoint: string) {
    this.#endpoint = endpoint;
  }

  /** Returns the revision that the key then has. */
  async put(key: string, value: Buffer): Promise<string> {
    const body = { key: encode(key), value: value.toString('base64') };
    return stringAt(await this.#call('kv/put', body), 'header', 'revision') ?? '';
  }

  async delete(key: string): Promise<void> {
    await this.#call('kv/deleterange', { key: encode(key) });
  }

  async keys(): Promise<string[]> {
    return [...(await this.revisions()).keys()];
  }

  /** Returns the revision of every key, which is new whenever its value is written. */
  async revisions(): Promise<Map<string, string>> {
    const stored = await this.#range({ keys_only: true });
    return new Map(stored.map((entry) => [keyOf(entry), stringAt(entry, 'mod_revision') ?? '']));
  }

  /** Returns every value with its revision by its key. */
  async all(): Promise<Map<string, Stored>> {
    return new Map(
      (await this.#range({})).map((entry) => [
        keyOf(entry),
        {
          value: decode(stringAt(entry, 'value')),
          revision: stringAt(entry, 'mod_revision') ?? '',
        },
      ]),
    );
  }

  async #range(options: JsonObject): Promise<Json[]> {
    const range = { key: encode(''), range_end: Buffer.from('/registry0').toString('base64') };
    return arrayAt(await this.#call('kv/range', { ...range, ...options }), 'kvs');
  }

  async #call(path: string, body: JsonObject): Promise<JsonObject> {
    const answer = await fetch(`${this.#endpoint}/v3/${path}`, {
      method: 'POST',
      body: JSON.stringify(body),
    });
    if (!answer.ok) throw new Error(`etcd: ${answer.status} ${await answer.text()}`);
    return (await answer.json()) as JsonObject;
  }
}

export interface Stored {
  value: Buffer;
  revision: string;
}

const ROOT = '/registry/';
const keyOf = (entry: Json): string => decode(stringAt(entry, 'key')).toString().slice(ROOT.length);
const encode = (key: string): string => Buffer.from(ROOT + key).toString('base64');
const decode = (text = ''): Buffer => Buffer.from(text, 'base64');

/** What servers write for themselves, at any time. */
const OF_SERVERS = [
  /^masterleases\//,
  /^ranges\//,
  /^leases\/kube-system\/(?:apiserver-|kube-controller-manager$)/,
  /^serviceaccounts\/kube-system\//,
  /^configmaps\/kube-system\/(?:extension-apiserver-authentication|kube-apiserver-)/,
  /^configmaps\/[^/]+\/kube-root-ca\.crt$/,
];

const QUIET_MS = 1_000;
const LIMIT_MS = 15_000;

/** Returns what is stored as soon as the controllers of a server that has just started have made what is theirs. */
export async function whenQuiet(etcd: Etcd): Promise<Map<string, Stored>> {
  for (let before = ''; ; await sleep(QUIET_MS)) {
    const keys = (await etcd.keys()).join();
    if (keys === before) return etcd.all();
    before = keys;
  }
}

/**
 * Makes what is stored as it was. Controllers may write once more about what they saw a moment ago, so it has to
 * stay so for a while. Returns whether it did.
 */
export async function restore(etcd: Etcd, wanted: ReadonlyMap<string, Stored>): Promise<boolean> {
  let quietSince = Date.now();
  for (const end = Date.now() + LIMIT_MS; Date.now() < end; await sleep(QUIET_MS / 4)) {
    const differing = await differences(etcd, wanted);
    for (const key of differing) {
      const before = wanted.get(key);
      if (before === undefined) await etcd.delete(key);
      else before.revision = await etcd.put(key, before.value);
    }
    if (differing.length > 0) quietSince = Date.now();
    if (Date.now() - quietSince >= QUIET_MS) return true;
  }
  return false;
}

/** Namespaces first: then nothing can be made in them any more. */
async function differences(etcd: Etcd, wanted: ReadonlyMap<string, Stored>): Promise<string[]> {
  const stored = await etcd.revisions();
  return [...new Set([...stored.keys(), ...wanted.keys()])]
    .filter((key) => !OF_SERVERS.some((own) => own.test(key)))
    .filter((key) => stored.get(key) !== wanted.get(key)?.revision)
    .sort((a, b) => Number(b.startsWith('namespaces/')) - Number(a.startsWith('namespaces/')));
}
