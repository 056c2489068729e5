import {
  createServer,
  type IncomingHttpHeaders,
  type IncomingMessage,
  request as requestHttp,
  type Server,
  type ServerResponse,
} from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo, Socket } from 'node:net';

/** Answers a request in place of the server, or changes the server's answer. */
export type Fault = (exchange: FaultExchange) => void | Promise<void>;

export interface FaultRule {
  /** Matched against "GET /api/v1/namespaces/x?limit=500". */
  request: RegExp;
  /** The number of the first matching request that gets the fault; 1 unless given. */
  from?: number;
  /** How many of them get the fault; all unless given. */
  times?: number;
  fault: Fault;
}

export interface Answer {
  status: number;
  headers: IncomingHttpHeaders;
  body: Buffer;
}

export interface FaultExchange {
  /** With method and query, as rules see it. */
  readonly line: string;
  readonly headers: IncomingHttpHeaders;
  readonly response: ServerResponse;
  readonly socket: Socket;
  /** Sends the request to the server behind the proxy and waits for its whole answer. */
  ask(): Promise<Answer>;
  /** Passes the request on as if there were no fault; also for watches, which have no end. */
  pass(): void;
}

export interface FaultProxy {
  readonly url: string;
  /** Every request, in the order of arrival. */
  readonly lines: string[];
  add(...rules: FaultRule[]): void;
  /** Ends all connections; from now on another server is behind this address. */
  leadTo(target: string): void;
  close(): Promise<void>;
}

interface FaultProxyOptions {
  /** Of the server behind. */
  target: string;
  rules?: readonly FaultRule[];
  tls?: { key: string; cert: string };
  /** The address to listen on; loopback unless given. */
  host?: string;
}

/** Stands between the gate and the API server, and does to their talk what networks do to it. */
export async function startFaultProxy(options: FaultProxyOptions): Promise<FaultProxy> {
  const rules: { rule: FaultRule; seen: number }[] = [];
  const lines: string[] = [];
  const sockets = new Set<Socket>();
  let { target } = options;
  const add = (...more: FaultRule[]): void => {
    for (const rule of more) rules.push({ rule, seen: 0 });
  };
  add(...(options.rules ?? []));

  const handle = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const body = await readAll(request);
    const line = `${request.method} ${request.url}`;
    lines.push(line);
    const fault = pick(rules, line) ?? ((exchange) => exchange.pass());
    try {
      await fault(exchangeOf(request, response, body, target, line));
    } catch {
      // The client has gone, or the server behind has: this connection is of no use any more.
      response.destroy();
    }
  };
  const listener = (request: IncomingMessage, response: ServerResponse): void => {
    void handle(request, response);
  };
  const { tls } = options;
  const server: Server =
    tls === undefined ? createServer(listener) : createTlsServer(tls, listener);
  server.on('connection', (socket: Socket) => {
    sockets.add(socket);
    socket.on('error', () => undefined);
    socket.on('close', () => sockets.delete(socket));
  });
  await new Promise<void>((resolve) => server.listen(0, options.host ?? '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  const { pathname } = new URL(target);
  return {
    url: `${tls === undefined ? 'http' : 'https'}://127.0.0.1:${port}${pathname.replace(/\/$/, '')}`,
    lines,
    add,
    leadTo: (other) => {
      target = other;
      for (const socket of sockets) socket.destroy();
    },
    close: async () => {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** The first rule that applies; every rule that matches counts. */
function pick(rules: { rule: FaultRule; seen: number }[], line: string): Fault | undefined {
  let picked: Fault | undefined;
  for (const entry of rules) {
    const { request, from = 1, times = Number.POSITIVE_INFINITY, fault } = entry.rule;
    if (!request.test(line)) continue;
    entry.seen++;
    if (entry.seen >= from && entry.seen < from + times) picked ??= fault;
  }
  return picked;
}

function exchangeOf(
  request: IncomingMessage,
  response: ServerResponse,
  body: Buffer,
  target: string,
  line: string,
): FaultExchange {
  const ask = (onAnswer: (answer: IncomingMessage) => void): void => {
    const { host: _host, ...headers } = request.headers;
    // Answers are edited: they have to come unpacked.
    const outgoing = requestHttp(
      new URL(request.url ?? '/', target),
      { method: request.method, headers: { ...headers, 'accept-encoding': 'identity' } },
      onAnswer,
    );
    outgoing.on('error', () => response.destroy());
    response.on('close', () => outgoing.destroy());
    outgoing.end(body);
  };
  return {
    line,
    headers: request.headers,
    response,
    socket: request.socket,
    ask: () =>
      new Promise((resolve, reject) =>
        ask((answer) => {
          readAll(answer).then((bytes) => {
            const { statusCode: status = 502, headers } = answer;
            resolve({ status, headers, body: bytes });
          }, reject);
        }),
      ),
    pass: () =>
      ask((answer) => {
        answer.on('error', () => response.destroy());
        response.writeHead(answer.statusCode ?? 502, answer.headers);
        // A watch that says nothing for a while has been accepted all the same.
        response.flushHeaders();
        answer.pipe(response);
      }),
  };
}

async function readAll(stream: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of stream) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
}
