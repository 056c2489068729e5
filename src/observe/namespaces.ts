import { collectItems } from '../kubernetes/api.ts';
import { namespacePath } from '../kubernetes/paths.ts';
import { type NamespaceFacts, namespaceFacts } from '../model/facts/metadata.ts';
import { type Read, readFailed, readOk, valueIn } from '../model/read.ts';
import { listTogether, MAX_SINGLE_READS, type Reading } from './collections.ts';

export const NAMESPACES_PATH = '/api/v1/namespaces';

/** Reads the namespace; `undefined` if the API server answers that the name does not exist. */
export async function readNamespace(
  name: string,
  { api, signal }: Reading,
): Promise<Read<NamespaceFacts | undefined>> {
  const got = await api.get(namespacePath(name), { signal });
  if (!got.ok) return got.failure.kind === 'not-found' ? readOk(undefined) : got;
  const facts = namespaceFacts(got.value);
  if (facts.uid !== '') return readOk(facts);
  // Without a UID it could be mistaken for another namespace of this name.
  return readFailed({ kind: 'unreadable', message: 'the server sent a namespace without a UID' });
}

/** Reads many namespaces, by name; `uid` is the UID of the expected one, if known. */
export async function readNamespaces(
  wanted: readonly { name: string; uid?: string }[],
  deps: Reading,
): Promise<Map<string, Read<NamespaceFacts | undefined>>> {
  const names = new Set(wanted.map(({ name }) => name));
  const begin = collectItems((item) => [namespaceFacts(item)].filter((one) => names.has(one.name)));
  const [many, few, page] = [wanted.length, MAX_SINGLE_READS, { limit: 500 }];
  const whole = await listTogether(NAMESPACES_PATH, many, few, begin, page, deps);
  if (!whole.ok && whole.failure.kind !== 'forbidden')
    return new Map(wanted.map(({ name }) => [name, whole]));
  const listed = new Map((valueIn(whole) ?? []).map((one) => [one.name, one]));
  const found = wanted.map(async ({ name, uid }) => {
    const facts = listed.get(name);
    const isMeant = facts !== undefined && facts.uid !== '' && (uid ?? facts.uid) === facts.uid;
    // A name that is missing in a list may still exist; only a GET decides.
    return [name, isMeant ? readOk(facts) : await readNamespace(name, deps)] as const;
  });
  return new Map(await Promise.all(found));
}
