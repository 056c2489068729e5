import type { Json, JsonObject } from '../../src/base/json.ts';

export interface Answer {
  status: number;
  headers: Headers;
  body: Json;
}

/** Gitea's REST API as somebody, in plain requests: a second opinion beside the client under test. */
export class GiteaApi {
  readonly url: string;
  readonly accessToken: string;

  constructor(url: string, accessToken: string) {
    this.url = url;
    this.accessToken = accessToken;
  }

  /** The answer, whatever its status is. */
  async ask(method: string, path: string, body?: JsonObject): Promise<Answer> {
    const response = await fetch(`${this.url}/api/v1${path}`, {
      method,
      headers: { authorization: `token ${this.accessToken}`, 'content-type': 'application/json' },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const text = await response.text();
    return { status: response.status, headers: response.headers, body: parsed(text) };
  }

  /** What a successful answer holds. */
  async call<T = JsonObject>(method: string, path: string, body?: JsonObject): Promise<T> {
    const answer = await this.ask(method, path, body);
    if (answer.status >= 400) {
      throw new Error(`${method} ${path}: ${answer.status} ${JSON.stringify(answer.body)}`);
    }
    return answer.body as T;
  }

  get<T = JsonObject>(path: string): Promise<T> {
    return this.call('GET', path);
  }

  post<T = JsonObject>(path: string, body: JsonObject = {}): Promise<T> {
    return this.call('POST', path, body);
  }
}

function parsed(text: string): Json {
  try {
    return JSON.parse(text) as Json;
  } catch {
    return text;
  }
}
