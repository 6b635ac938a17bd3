/** Documents of the token's tenant. A put of many is cut into requests, each of which is repeated as a whole. */

import type {
  DocumentFilters,
  DocumentListed,
  DocumentPut,
  DocumentSearchRequest,
  DocumentSearchResponse,
  DocumentShown,
  DocumentsDeleted,
  DocumentsPut,
  ListDocumentsQuery,
  Operations,
  PutCounts,
} from "./api/service.ts";
import { pauseOf, type RequestOptions, sleep } from "./connection.ts";
import { errorOf, isObject, ToolscriptError } from "./errors.ts";
import type { ListOptions, Operator, Pages } from "./resource.ts";

/** A document to put. A title becomes `metadata.title`, and counts more than the text. */
export interface NewDocument {
  /** Printable, of at most 512 characters. */
  id: string;
  /** At most 1,000,000 characters. */
  text: string;
  title?: string;
  /** An object of at most 16 KiB. */
  metadata?: Record<string, unknown>;
}

/** The error of a put that ended early. */
export class PutError extends ToolscriptError {
  override readonly name = "PutError";
  /** What the server acknowledged before: these documents are stored. */
  readonly acknowledged: DocumentsPut;

  constructor(error: ToolscriptError, acknowledged: DocumentsPut) {
    super(error.message, { ...error, cause: error });
    this.acknowledged = acknowledged;
  }
}

export const MAX_DOCUMENTS_OF_A_REQUEST = 200;
const MAX_LENGTH_OF_A_REQUEST = 1024 * 1024;
const MAX_DELETED_AT_ONCE = 1000;
/** Texts are embedded before a put is answered. */
export const PUT_TIMEOUT_MS = 300_000;
const TRANSIENT = new Set(["RATE_LIMITED", "UNAVAILABLE"]);

type Input = Iterable<NewDocument> | AsyncIterable<NewDocument>;

export class Documents {
  readonly #operator: Operator<Operations>;

  constructor(operator: Operator<Operations>) {
    this.#operator = operator;
  }

  /** Search by text, by `filters` on metadata, or both; without a text, `query` is null. */
  async search(
    query: string | null,
    search: Omit<DocumentSearchRequest, "query"> = {},
    options?: RequestOptions,
  ): Promise<DocumentSearchResponse> {
    return await this.#operator.send("search_documents", { body: { query, ...search } }, options);
  }

  list(
    list: Omit<ListOptions<ListDocumentsQuery>, "filters"> & { filters?: DocumentFilters | undefined } = {},
    options?: RequestOptions,
  ): Pages<DocumentListed> {
    const filters = list.filters && JSON.stringify(list.filters);
    return this.#operator.list("list_documents", { ...list, filters } as ListOptions<ListDocumentsQuery>, options);
  }

  async get(id: string, options?: RequestOptions): Promise<DocumentShown> {
    return await this.#operator.send("get_document", { path: { document_id: id } }, options);
  }

  /** Delete one document or several; the answer names those that did not exist. */
  async delete(ids: string | Iterable<string>, options?: RequestOptions): Promise<DocumentsDeleted> {
    const all = typeof ids === "string" ? [ids] : [...ids];
    const whole: DocumentsDeleted = { deleted: [], missing: [] };
    for (let start = 0; start === 0 || start < all.length; start += MAX_DELETED_AT_ONCE) {
      const body = { ids: all.slice(start, start + MAX_DELETED_AT_ONCE) };
      const { deleted, missing } = await this.#operator.send("delete_documents", { body }, options);
      whole.deleted.push(...deleted);
      whole.missing.push(...missing);
    }
    return whole;
  }

  /**
   * Add documents, or replace those with the same ids. Unchanged ones cost nothing: after a failure, put them all
   * again. A refused document is in the results and does not affect the others.
   */
  async put(documents: Input, options?: RequestOptions): Promise<DocumentsPut> {
    const whole: DocumentsPut = { results: [], counts: { created: 0, updated: 0, unchanged: 0, refused: 0 } };
    try {
      for await (const result of this.putStream(documents, options)) note(whole, result);
    } catch (error) {
      throw error instanceof ToolscriptError ? new PutError(error, whole) : error;
    }
    return whole;
  }

  /** Like `put`, but yield each result when it is acknowledged, for more documents than fit in memory. */
  async *putStream(documents: Input, options: RequestOptions = {}): AsyncGenerator<DocumentPut, void, undefined> {
    let batch: string[] = [];
    let [length, sent] = [0, 0];
    for await (const document of documents) {
      const line = JSON.stringify(document) ?? "null";
      const isFull = batch.length === MAX_DOCUMENTS_OF_A_REQUEST || length + line.length > MAX_LENGTH_OF_A_REQUEST;
      if (isFull && batch.length > 0) {
        yield* this.#putBatch(batch, sent, options);
        [sent, batch, length] = [sent + batch.length, [], 0];
      }
      batch.push(line);
      length += line.length;
    }
    if (batch.length > 0) yield* this.#putBatch(batch, sent, options);
  }

  /** Put the lines of one request. What a server leaves undone when it stops is sent again. */
  async *#putBatch(lines: string[], before: number, options: RequestOptions): AsyncGenerator<DocumentPut> {
    let done = 0;
    for (let attempt = 0; done < lines.length; attempt += 1) {
      const { results, stopped } = await this.#putLines(lines.slice(done), options);
      for (const result of results) yield { ...result, line: before + done + (result.line ?? 0) };
      done += results.length;
      if (done === lines.length) return;
      if (results.length > 0) attempt = 0;
      await this.#waitFor(stopped, attempt, options);
    }
  }

  async #putLines(lines: string[], options: RequestOptions): Promise<Acknowledged> {
    const { connection } = this.#operator;
    const exchange = { ...this.#operator.exchange("put_documents", {}), lines: lines.join("\n") };
    const timeoutMs = options.timeoutMs ?? Math.max(connection.timeoutMs, PUT_TIMEOUT_MS);
    const text = await connection.text(exchange, { ...options, timeoutMs });
    const acknowledged = acknowledgedIn(text, lines.length);
    if (acknowledged) return acknowledged;
    throw connection.unexpected();
  }

  async #waitFor(stopped: ToolscriptError | undefined, attempt: number, options: RequestOptions): Promise<void> {
    const error = stopped ?? this.#operator.connection.unexpected();
    const isTransient = TRANSIENT.has(error.code) && error.details["retryable"] !== false && stopped !== undefined;
    const pause = isTransient && attempt < this.#operator.connection.retries ? pauseOf(error, attempt) : undefined;
    if (pause === undefined) throw error;
    await sleep(pause, options.signal);
  }
}

interface Acknowledged {
  results: DocumentPut[];
  stopped: ToolscriptError | undefined;
}

/** Parse the lines of an answer: a result for each document, and a last line with `counts` and perhaps `error`. */
function acknowledgedIn(text: string, sent: number): Acknowledged | undefined {
  try {
    const lines = text.trimEnd().split("\n").map((line) => JSON.parse(line) as unknown);
    const last = lines.pop();
    // A connection that ended early leaves an answer without its last line.
    const isWhole = isObject(last) && isObject(last["counts"]) && lines.length <= sent;
    return isWhole && lines.every(isResult) ? { results: lines, stopped: errorOf(last) } : undefined;
  } catch {
    return undefined;
  }
}

function isResult(value: unknown): value is DocumentPut {
  return isObject(value) && typeof value["state"] === "string" && "id" in value;
}

function note(whole: DocumentsPut, result: DocumentPut): void {
  whole.results.push(result);
  const counts: PutCounts = whole.counts;
  counts[result.state] = (counts[result.state] ?? 0) + 1;
}
