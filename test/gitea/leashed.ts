import { Server } from '../cluster/processes.ts';

/** Ends the program when this process ends, however it does: its standard input closes then. */
const LEASH = `
exec 3<&0
"$@" </dev/null 3<&- & program=$!
trap 'kill $program' TERM
{ read -r _ <&3; kill $program; } & leash=$!
exec 3<&-
wait $program
wait $program
code=$?
kill $leash
exit $code`;

/** A program that knows nothing of a leash, with this environment and no other. */
export function startLeashed(
  name: string,
  command: readonly string[],
  env: Readonly<Record<string, string>>,
  logFile: string,
): Server {
  const variables = Object.entries(env).map(([key, value]) => `${key}=${value}`);
  return Server.start(
    '/bin/sh',
    '-c',
    [LEASH, name, 'env', '-i', ...variables, ...command],
    logFile,
  );
}
