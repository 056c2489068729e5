import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync, readFileSync } from 'node:fs';
import { createServer } from 'node:net';

/** One server of the control plane, its log in a file. */
export class Server {
  readonly name: string;
  readonly logFile: string;
  readonly #child: ChildProcess;
  readonly #ended: Promise<void>;
  #isStopped = false;

  private constructor(name: string, logFile: string, child: ChildProcess, died: () => void) {
    this.name = name;
    this.logFile = logFile;
    this.#child = child;
    this.#ended = new Promise((resolve) => {
      child.once('exit', () => resolve());
      child.once('error', () => resolve());
    });
    child.once('exit', () => {
      if (!this.#isStopped) died();
    });
  }

  /** `died` is called when the process ends and nobody has stopped it. */
  static start(
    binary: string,
    name: string,
    flags: readonly string[],
    logFile: string,
    died: () => void = () => {},
  ): Server {
    const log = openSync(logFile, 'a');
    const child = spawn(binary, [name, ...flags], {
      // A pipe as standard input is the leash: it closes when this process dies, however it dies.
      stdio: ['pipe', log, log],
      // Memory for time: a third of the work of a server that starts is to collect garbage.
      env: { GOGC: '300', ...process.env, CONTROL_PLANE_LEASH: 'stdin' },
      // Out of the terminal's process group: Ctrl-C must not end etcd before the API server.
      detached: true,
    });
    closeSync(log);
    child.stdin?.on('error', () => {}); // it exited first; its exit is what is looked at
    return new Server(name, logFile, child, died);
  }

  get pid(): number | undefined {
    return this.#child.pid;
  }

  /** Whether nobody has stopped it. */
  get isWanted(): boolean {
    return !this.#isStopped;
  }

  get running(): boolean {
    return (
      this.#child.exitCode === null && this.#child.signalCode === null && this.pid !== undefined
    );
  }

  /** Ends it, politely at first; does nothing when it has ended. */
  async stop(politeMs: number): Promise<void> {
    this.#isStopped = true;
    if (!this.running) return;
    this.#child.kill('SIGTERM');
    const impatient = setTimeout(() => this.#child.kill('SIGKILL'), politeMs);
    await this.#ended;
    clearTimeout(impatient);
  }

  kill(): void {
    this.#isStopped = true;
    this.#child.kill('SIGKILL');
  }

  lostItsPort(): boolean {
    return !this.running && this.logTail().includes('address already in use');
  }

  logTail(lines = 15): string {
    return readFileSync(this.logFile, 'utf8').trimEnd().split('\n').slice(-lines).join('\n');
  }
}

/** Ports that were free a moment ago. Somebody may take one before it is used: retry then. */
export async function freePorts(count: number): Promise<number[]> {
  const holders = await Promise.all(
    Array.from({ length: count }, async () => {
      const holder = createServer().listen(0, '127.0.0.1');
      await once(holder, 'listening');
      return holder;
    }),
  );
  const ports = holders.map((holder) => {
    const address = holder.address();
    if (address === null || typeof address === 'string') throw new Error('no port was given');
    return address.port;
  });
  await Promise.all(holders.map((holder) => once(holder.close(), 'close')));
  return ports;
}
