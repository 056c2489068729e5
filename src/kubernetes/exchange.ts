import type { IncomingHttpHeaders } from 'node:http';
import { Readable } from 'node:stream';
import { promisify } from 'node:util';
import { gunzip } from 'node:zlib';
import { type Dispatcher, errors } from 'undici';
import { headerOf } from './failures.ts';

export const TOO_LATE = new Error('no answer within the time limit');
/** Each part that is unpacked is a way to another thread and back: with the 16 KiB of Node, thirty for a page of 500 objects. */
const CHUNK_BYTES = 256 * 1024;

export interface Exchanged {
  status: number;
  headers: IncomingHttpHeaders;
  text: string;
  /** In the place of the text of a success, if `isStream`. It has to be read or destroyed. */
  stream?: Readable;
}

interface Limits {
  signal?: AbortSignal;
  timeoutMs: number;
  mostBytes: number;
  isStream: boolean;
  /** Called before the body has come. */
  onHead: (headers: IncomingHttpHeaders) => void;
}

/**
 * Sends a request and collects its answer. `request` of undici makes a stream of each answer: a quarter of the
 * processor's time of a short one. `fetch` follows redirects.
 */
export async function exchange(
  dispatcher: Dispatcher,
  request: Dispatcher.DispatchOptions,
  { signal, timeoutMs, mostBytes, isStream, onHead }: Limits,
): Promise<Exchanged> {
  signal?.throwIfAborted();
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const answer: Exchanged = { status: 0, headers: {}, text: '' };
  const kept: Buffer[] = [];
  let left = mostBytes;
  let stopped: Error | undefined;
  let abort = (reason: Error): unknown => (stopped = reason);
  const stop = (reason: Error): void => {
    abort(reason);
    // undici ends a request only after it has a connection, which can take 10 s to fail.
    reject(reason);
  };
  const cancel = (): void => stop(signal?.reason);
  const timer = setTimeout(stop, timeoutMs, TOO_LATE);
  signal?.addEventListener('abort', cancel, { once: true });
  dispatcher.dispatch(request, {
    onRequestStart(controller) {
      abort = (reason) => controller.abort(reason);
      if (stopped !== undefined) abort(stopped);
    },
    onResponseStart(controller, status, headers) {
      Object.assign(answer, { status, headers });
      onHead(headers);
      if (!isStream || status < 200 || status > 299) return;
      const body = new Readable({ signal, read: () => controller.resume() });
      body.on('error', () => undefined).on('close', () => abort(new errors.RequestAbortedError()));
      answer.stream = body;
      resolve();
    },
    onResponseData(controller, chunk) {
      if (answer.stream?.push(chunk) === false) controller.pause();
      if (answer.stream !== undefined) return;
      kept.push(chunk);
      left -= chunk.length;
      if (left < 0) abort(new errors.ResponseExceededMaxSizeError());
    },
    onResponseEnd() {
      answer.stream?.push(null);
      resolve();
    },
    onResponseError(_, error) {
      answer.stream?.destroy(error);
      reject(error);
    },
  });
  await promise.finally(() => {
    clearTimeout(timer);
    signal?.removeEventListener('abort', cancel);
  });
  if (answer.stream !== undefined) return answer;
  const body = Buffer.concat(kept);
  // The API server compresses answers larger than 128 KiB (apiserver, pkg/endpoints/handlers/responsewriters).
  const isPacked = headerOf(answer, 'content-encoding') === 'gzip';
  const options = { maxOutputLength: mostBytes, chunkSize: CHUNK_BYTES };
  const bytes = isPacked ? await promisify(gunzip)(body, options) : body;
  return { ...answer, text: bytes.toString('utf8') };
}
