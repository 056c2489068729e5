import { open } from 'node:fs/promises';
import { isObject, type Json, numberAt, stringAt } from '../../src/base/json.ts';

/** In a line of the log. Most lines are about reading, and a log has hundreds of thousands. */
const WRITES = /"verb":"(?:create|update|patch|delete|deletecollection)"/;
/** Questions that happen to be asked by POST. */
const QUESTIONS = /^selfsubject(access|rules)?reviews$/;

/**
 * What this user asked the API server to change since the log had this size, as `verb resource/name`, from the
 * server's own audit log; of this namespace if one is given. Questions and dry runs change nothing and are left out;
 * refused requests count.
 */
export async function mutationsBy(
  auditLog: string,
  user: string,
  { from = 0, of }: { from?: number; of?: string } = {},
): Promise<string[]> {
  return (await writesSince(auditLog, user, from))
    .filter(({ namespace, name }) => of === undefined || namespace === of || name === of)
    .map(textOf);
}

/** A request to change something, as the API server noted it. */
export interface Write {
  verb: string;
  resource: string;
  subresource: string | undefined;
  namespace: string | undefined;
  name: string | undefined;
  /** HTTP status of the answer. */
  code: number;
}

/** What the log tells from here on: its present end. */
export async function endOf(auditLog: string): Promise<number> {
  const file = await open(auditLog);
  try {
    return (await file.stat()).size;
  } finally {
    await file.close();
  }
}

/** What this user asked the API server to change since the log had this size. */
export async function writesSince(auditLog: string, user: string, from: number): Promise<Write[]> {
  const file = await open(auditLog);
  try {
    const { size } = await file.stat();
    const { buffer } = await file.read(Buffer.alloc(size - from), 0, size - from, from);
    return writesIn(buffer.toString('utf8'), user);
  } finally {
    await file.close();
  }
}

function writesIn(log: string, user: string): Write[] {
  return log
    .split('\n')
    .filter((line) => line.includes(`"${user}"`) && WRITES.test(line) && line.endsWith('}')) // the last may be half written
    .map((line) => JSON.parse(line) as Json)
    .filter(isObject)
    .filter((event) => stringAt(event, 'user', 'username') === user)
    .filter((event) => !QUESTIONS.test(stringAt(event, 'objectRef', 'resource') ?? ''))
    .filter((event) => !(stringAt(event, 'requestURI') ?? '').includes('dryRun=All'))
    .map((event) => ({
      verb: stringAt(event, 'verb') ?? '',
      resource: stringAt(event, 'objectRef', 'resource') ?? '',
      subresource: stringAt(event, 'objectRef', 'subresource'),
      namespace: stringAt(event, 'objectRef', 'namespace'),
      name: stringAt(event, 'objectRef', 'name'),
      code: numberAt(event, 'responseStatus', 'code') ?? 0,
    }));
}

export function textOf({ verb, resource, subresource, name }: Write): string {
  return `${verb} ${subresource === undefined ? resource : `${resource}/${subresource}`}/${name}`;
}
