import { readFile } from 'node:fs/promises';
import { type Json, stringAt } from '../../src/base/json.ts';

const WRITES = new Set(['create', 'update', 'patch', 'delete', 'deletecollection']);
/** Questions that happen to be asked by POST. */
const QUESTIONS = /^selfsubject(access|rules)reviews$/;

/**
 * What this user asked the API server to change, as `verb resource/name`, from the server's own
 * audit log. Questions and dry runs change nothing and are left out; refused requests count.
 */
export async function mutationsBy(
  auditLog: string,
  user: string,
  concerns: (namespace: string | undefined, name: string | undefined) => boolean,
): Promise<string[]> {
  const lines = (await readFile(auditLog, 'utf8')).split('\n');
  return lines
    .filter((line) => line.includes(`"${user}"`) && line.endsWith('}')) // the last may be half written
    .map((line) => JSON.parse(line) as Json)
    .filter((event) => stringAt(event, 'user', 'username') === user)
    .filter((event) => WRITES.has(stringAt(event, 'verb') ?? ''))
    .filter((event) => !QUESTIONS.test(stringAt(event, 'objectRef', 'resource') ?? ''))
    .filter((event) => !(stringAt(event, 'requestURI') ?? '').includes('dryRun=All'))
    .filter((event) =>
      concerns(stringAt(event, 'objectRef', 'namespace'), stringAt(event, 'objectRef', 'name')),
    )
    .map((event) => {
      const resource = ['resource', 'subresource']
        .map((key) => stringAt(event, 'objectRef', key))
        .filter((part) => part !== undefined)
        .join('/');
      return `${stringAt(event, 'verb')} ${resource}/${stringAt(event, 'objectRef', 'name')}`;
    });
}
