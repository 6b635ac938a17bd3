/** Sends requests: addresses, timeouts, retries and errors. It knows no resource. */

import { errorOf, ToolscriptError } from "./errors.ts";

export interface ClientOptions {
  /** Address of the service or gateway, such as `http://127.0.0.1:8080`; a path before `/api/v1` is kept. */
  url: string;
  /** Sent as `Authorization: Bearer`. */
  token?: string | undefined;
  /** Maximum wait for an answer to begin, and then for each part of it. Default: 30,000. */
  timeoutMs?: number | undefined;
  /** How often a request is sent again after 429, 503 or a lost connection. Default: 2. */
  retries?: number | undefined;
  /** In place of the global `fetch`, such as for a proxy. */
  fetch?: typeof fetch | undefined;
}

/** Options of one request. */
export interface RequestOptions {
  /** Ends the request, whatever it is doing; it bounds all of it, retries included. */
  signal?: AbortSignal | undefined;
  /** In place of the client's `timeoutMs`. */
  timeoutMs?: number | undefined;
}

/**
 * When a request may be sent again. `always`: a repetition changes nothing and answers the same. `refused`: only
 * when the server refused it, because a second deletion finds nothing. `never`: it would run twice.
 */
export type Repeat = "always" | "refused" | "never";

export interface Exchange {
  method: string;
  path: string;
  query?: object | undefined;
  body?: unknown;
  /** A body that is sent as it is, in place of JSON. */
  lines?: string | undefined;
  repeat: Repeat;
  /** A status that answers the question, although it is an error for others. */
  alsoAnswers?: number | undefined;
}

export const DEFAULT_TIMEOUT_MS = 30_000;
export const DEFAULT_RETRIES = 2;
const FIRST_PAUSE_MS = 500;
const MAX_PAUSE_MS = 30_000;
/** A server that asks for a longer pause gets no second request: the error tells the caller how long. */
export const MAX_RETRY_AFTER_MS = 60_000;
const LINES = "application/x-ndjson";
/** Deno's `fetch` repeats a request whose connection is reset, even one that ran, unless its body is a stream. */
const REPEATS_BY_ITSELF = "Deno" in globalThis;

export class Connection {
  readonly url: string;
  readonly retries: number;
  readonly timeoutMs: number;
  readonly #token: string;
  readonly #fetch: typeof fetch;

  constructor(options: ClientOptions) {
    this.url = checkedUrl(options.url);
    this.retries = options.retries ?? DEFAULT_RETRIES;
    this.#token = checkedToken(options.token ?? "");
    this.timeoutMs = options.timeoutMs ?? DEFAULT_TIMEOUT_MS;
    // A browser refuses a `fetch` that is called as a method of something else.
    this.#fetch = options.fetch ?? ((input, init) => fetch(input, init));
  }

  /** Return the text of the answer, after retries. */
  async text(exchange: Exchange, options: RequestOptions = {}): Promise<string> {
    for (let attempt = 0; ; attempt += 1) {
      try {
        return await this.#once(exchange, options);
      } catch (error) {
        const pause = attempt < this.retries ? pauseBefore(error, exchange.repeat, attempt) : undefined;
        if (pause === undefined) throw error;
        await sleep(pause, options.signal);
      }
    }
  }

  /** Return the parsed answer; undefined for one without content. */
  async json(exchange: Exchange, options: RequestOptions = {}): Promise<unknown> {
    const text = await this.text(exchange, options);
    if (!text) return undefined;
    try {
      return JSON.parse(text);
    } catch (cause) {
      throw this.unexpected({ cause });
    }
  }

  /** Return the error for an answer that does not look like Toolscript's. */
  unexpected(facts: { status?: number; cause?: unknown } = {}): ToolscriptError {
    const answered = facts.status === undefined ? "" : ` (it answered ${facts.status})`;
    return new ToolscriptError(`the server at ${this.url} is not Toolscript, or runs another version${answered}`, {
      code: "UNAVAILABLE",
      hint: "is `url` the address of `toolscript serve` or `toolscript gateway start`?",
      ...facts,
    });
  }

  async #once(exchange: Exchange, options: RequestOptions): Promise<string> {
    const timeoutMs = options.timeoutMs ?? this.timeoutMs;
    const wait = new BoundedWait(timeoutMs, options.signal);
    const init = this.#init(exchange);
    try {
      const response = await this.#fetch(this.#address(exchange), { ...init, signal: wait.signal });
      const text = await read(response, wait);
      if (response.ok || response.status === exchange.alsoAnswers) return text;
      const { status, headers } = response;
      throw errorOf(parsed(text), status, headers) ?? this.unexpected({ status });
    } catch (error) {
      if (error instanceof ToolscriptError) throw error;
      if (options.signal?.aborted) throw options.signal.reason;
      throw wait.expired ? this.#late(timeoutMs, error) : this.#lost(error);
    } finally {
      wait.end();
    }
  }

  #init(exchange: Exchange): RequestInit {
    const isLines = exchange.lines !== undefined;
    const body = isLines ? exchange.lines : JSON.stringify(exchange.body);
    const headers: Record<string, string> = { accept: isLines ? LINES : "application/json, */*" };
    if (this.#token) headers["authorization"] = `Bearer ${this.#token}`;
    if (body !== undefined) headers["content-type"] = isLines ? LINES : "application/json";
    const init: RequestInit = { method: exchange.method, headers, redirect: "manual" };
    if (body === undefined) return init;
    return exchange.repeat !== "always" && REPEATS_BY_ITSELF ? { ...init, ...sentOnce(body) } : { ...init, body };
  }

  #address(exchange: Exchange): string {
    const query = new URLSearchParams();
    for (const [name, value] of Object.entries(exchange.query ?? {})) {
      for (const item of Array.isArray(value) ? value : [value]) {
        if (item !== undefined && item !== null) query.append(name, String(item));
      }
    }
    return this.url + exchange.path + (query.size ? `?${query}` : "");
  }

  #late(timeoutMs: number, cause: unknown): ToolscriptError {
    return new ToolscriptError(`the server at ${this.url} was silent for ${timeoutMs} ms`, {
      code: "UNAVAILABLE",
      hint: "`timeoutMs` gives it longer",
      cause: new DOMException(String(cause), "TimeoutError"),
    });
  }

  #lost(cause: unknown): ToolscriptError {
    // `fetch` hides the reason in the cause of its own error.
    const inner = cause instanceof Error && cause.cause instanceof Error ? cause.cause : cause;
    return new ToolscriptError(`the server at ${this.url} does not answer: ${reason(inner)}`, {
      code: "UNAVAILABLE",
      hint: "is it running, and is `url` its address?",
      cause,
    });
  }
}

/** Return a body that `fetch` cannot send a second time. Not every browser has those. */
function sentOnce(body: string): RequestInit {
  return { body: new Blob([body]).stream(), duplex: "half" } as RequestInit;
}

/** Fill the names in braces of a path. */
export function pathOf(template: string, values: Record<string, string | number> = {}): string {
  return template.replace(/\{(\w+)\}/g, (_, name: string) => step(String(values[name])));
}

/** Return a value as exactly one step of a path. */
function step(value: string): string {
  // A URL drops these steps, also when they are encoded: the request would reach another resource.
  const isDropped = value === "" || value === "." || value === "..";
  const encoded = isDropped ? undefined : encodedOrNothing(value);
  if (encoded !== undefined) return encoded;
  throw new ToolscriptError(`the id ${JSON.stringify(value)} cannot be part of an address`, {
    code: "VALIDATION_ERROR",
    hint: "ids are texts that are neither empty nor dots alone",
  });
}

function encodedOrNothing(value: string): string | undefined {
  try {
    return encodeURIComponent(value);
  } catch {
    return undefined;
  }
}

/** Return how long to wait before the request is sent again; undefined if it must not be. */
export function pauseBefore(error: unknown, repeat: Repeat, attempt: number): number | undefined {
  if (!(error instanceof ToolscriptError) || repeat === "never") return undefined;
  if (error.details["retryable"] === false) return undefined;
  const isRefused = error.status === 429 || error.status === 503;
  const isLost = error.status === undefined && error.cause !== undefined && !isTimeout(error);
  if (!isRefused && !(isLost && repeat === "always")) return undefined;
  return pauseOf(error, attempt);
}

/** Return the pause that the server asks for, or one that doubles; undefined if the server asks for too much. */
export function pauseOf(error: ToolscriptError, attempt: number): number | undefined {
  if (error.retryAfterMs !== undefined) {
    return error.retryAfterMs <= MAX_RETRY_AFTER_MS ? error.retryAfterMs : undefined;
  }
  const longest = Math.min(FIRST_PAUSE_MS * 2 ** attempt, MAX_PAUSE_MS);
  return longest * (0.5 + Math.random() / 2);
}

export async function sleep(ms: number, signal?: AbortSignal | undefined): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    const stop = () => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", stop);
      resolve();
    }, ms);
    if (signal?.aborted) stop();
    else signal?.addEventListener("abort", stop, { once: true });
  });
}

/** A signal that aborts after a silence, or with the signal of the caller. */
class BoundedWait {
  readonly #controller = new AbortController();
  readonly #stop: () => void;
  #timer: ReturnType<typeof setTimeout> | undefined;
  readonly #ms: number;
  readonly #outer: AbortSignal | undefined;
  expired = false;

  constructor(ms: number, outer: AbortSignal | undefined) {
    this.#ms = ms;
    this.#outer = outer;
    this.#stop = () => this.#controller.abort(outer?.reason);
    if (outer?.aborted) this.#stop();
    else outer?.addEventListener("abort", this.#stop, { once: true });
    this.restart();
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  restart(): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => {
      this.expired = true;
      this.#controller.abort();
    }, this.#ms);
  }

  end(): void {
    clearTimeout(this.#timer);
    this.#outer?.removeEventListener("abort", this.#stop);
  }
}

async function read(response: Response, wait: BoundedWait): Promise<string> {
  wait.restart();
  if (!response.body) return "";
  const reader = response.body.getReader();
  const decoder = new TextDecoder();
  let text = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return text + decoder.decode();
    wait.restart();
    text += decoder.decode(value, { stream: true });
  }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function isTimeout(error: ToolscriptError): boolean {
  return error.cause instanceof DOMException && error.cause.name === "TimeoutError";
}

function reason(error: unknown): string {
  return error instanceof Error ? error.message || error.name : String(error);
}

function checkedUrl(url: string): string {
  const parsedUrl = URL.canParse(url) ? new URL(url) : undefined;
  const isHttp = parsedUrl?.protocol === "http:" || parsedUrl?.protocol === "https:";
  // The address is part of messages, so it must not hold a password.
  if (parsedUrl && isHttp && !parsedUrl.username && !parsedUrl.password) {
    return parsedUrl.origin + parsedUrl.pathname.replace(/\/+$/, "");
  }
  throw new ToolscriptError("`url` is not the address of a service or gateway", {
    code: "VALIDATION_ERROR",
    hint: "write http://127.0.0.1:8080, without a user or password; `token` has the credential",
  });
}

function checkedToken(token: string): string {
  if (/^[\x21-\x7e]*$/.test(token)) return token;
  throw new ToolscriptError("`token` cannot be sent in a header", {
    code: "VALIDATION_ERROR",
    hint: "a token has printable ASCII characters and no spaces",
  });
}
