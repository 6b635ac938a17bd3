/** What the resources of service and gateway have in common: typed operations, and lists by pages. */

import { type Connection, type Exchange, pathOf, type Repeat, type RequestOptions } from "./connection.ts";
import { isObject, ToolscriptError } from "./errors.ts";

/** One page of a list. */
export interface Page<Entry> {
  results: Entry[];
  /** `cursor` of the next page; null on the last one. */
  next_cursor: string | null;
}

/** The query of a list, without its paging. */
export type ListOptions<Query> = Omit<Query, "limit"> & {
  /** Maximum number of entries that one request fetches. */
  page_size?: number | undefined;
};

type PathValues = Record<string, string | number>;

interface AnyParts {
  path?: PathValues;
  query?: object;
  body?: unknown;
}

/** The types of the operations of a server, and their paths, as its generated module has them. */
type OperationTypes<Operations> = { [Name in keyof Operations]: AnyParts & { answer: unknown } };
type OperationPaths<Operations> = { readonly [Name in keyof Operations]: { method: string; path: string } };
type NamesOfLists<Operations> = {
  [Name in keyof Operations]: Operations[Name] extends { answer: Page<unknown> } ? Name : never;
}[keyof Operations];
type EntryOf<Answer> = Answer extends Page<infer Entry> ? Entry : never;

/** What a request of an operation has; a query without required fields may be left out. */
type Parts<Operation> = Omit<Operation, "answer" | "query"> &
  (Operation extends { query: infer Query } ? OptionalQuery<Query> : unknown);
type OptionalQuery<Query> = object extends Query ? { query?: Query } : { query: Query };

/** Sends the operations of one server. */
export class Operator<Operations extends OperationTypes<Operations>> {
  readonly connection: Connection;
  readonly #paths: OperationPaths<Operations>;

  constructor(connection: Connection, paths: OperationPaths<Operations>) {
    this.connection = connection;
    this.#paths = paths;
  }

  async send<Name extends keyof Operations>(
    name: Name,
    parts: Parts<Operations[Name]>,
    options?: RequestOptions,
  ): Promise<Operations[Name]["answer"]> {
    const exchange = this.exchange(name, parts as AnyParts);
    const answer = await this.connection.json(exchange, options);
    if (isObject(answer) || (answer === undefined && exchange.method === "DELETE")) return answer;
    throw this.connection.unexpected();
  }

  exchange<Name extends keyof Operations>(name: Name, parts: AnyParts): Exchange {
    const { method, path } = this.#paths[name];
    return { ...parts, method, path: pathOf(path, parts.path), repeat: repeatOf(method, path) };
  }

  list<Name extends NamesOfLists<Operations>>(
    name: Name,
    list: ListOptions<object> & { cursor?: string | undefined },
    options?: RequestOptions,
    path: PathValues = {},
  ): Pages<EntryOf<Operations[Name]["answer"]>> {
    const { page_size: limit, cursor: first, ...query } = list;
    return new Pages(async (cursor) => {
      const parts = { path, query: { ...query, limit, cursor: cursor || undefined } };
      const page = await this.connection.json(this.exchange(name, parts), options);
      if (isPage<EntryOf<Operations[Name]["answer"]>>(page)) return page;
      throw this.connection.unexpected();
    }, first ?? "");
  }
}

/** The entries of a list, fetched page by page as they are read. */
export class Pages<Entry> implements AsyncIterable<Entry> {
  readonly #fetch: (cursor: string) => Promise<Page<Entry>>;
  readonly #first: string;

  constructor(fetch: (cursor: string) => Promise<Page<Entry>>, first: string) {
    this.#fetch = fetch;
    this.#first = first;
  }

  /** Yield the pages; `next_cursor` of one is the `cursor` with which a later list goes on. */
  async *pages(): AsyncGenerator<Page<Entry>, void, undefined> {
    let cursor: string | null = this.#first;
    while (cursor !== null) {
      const page: Page<Entry> = await this.#fetch(cursor);
      yield page;
      if (page.next_cursor !== null && page.next_cursor === cursor) throw endless();
      cursor = page.next_cursor;
    }
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Entry, void, undefined> {
    for await (const page of this.pages()) yield* page.results;
  }

  /** Return the entries of all pages. */
  async all(): Promise<Entry[]> {
    const entries: Entry[] = [];
    for await (const page of this.pages()) entries.push(...page.results);
    return entries;
  }
}

function endless(): ToolscriptError {
  return new ToolscriptError("the list does not end: a page has its own cursor as the next one", {
    code: "UNAVAILABLE",
    hint: "does a proxy answer from a cache?",
  });
}

function isPage<Entry>(value: unknown): value is Page<Entry> {
  const next = isObject(value) ? value["next_cursor"] : undefined;
  return isObject(value) && Array.isArray(value["results"]) && (next === null || typeof next === "string");
}

function repeatOf(method: string, path: string): Repeat {
  if (method === "GET" || method === "PUT" || path.endsWith("/search")) return "always";
  return method === "DELETE" || path.endsWith("/delete") ? "refused" : "never";
}
