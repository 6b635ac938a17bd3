/** The client of a gateway: find and call the tools of one person's MCP servers. */

import {
  type ActivityEntry,
  type CallResult,
  type GetHealthAnswer,
  type GetToolQuery,
  type ListActivityQuery,
  type ListReviewsQuery,
  type ListToolsQuery,
  OPERATIONS,
  type Operations,
  type Review,
  type ReviewDecision,
  type Server,
  type Tool,
  type ToolSearchAnswer,
  type ToolSearchRequest,
} from "./api/gateway.ts";
import { type ClientOptions, Connection, type RequestOptions } from "./connection.ts";
import { type ListOptions, Operator, type Pages } from "./resource.ts";

/** A tool may take long. */
export const CALL_TIMEOUT_MS = 600_000;

/** Requests to a running gateway: `toolscript gateway start`. */
export class GatewayClient {
  readonly tools: GatewayTools;
  readonly servers: Servers;
  readonly activity: Activity;
  readonly reviews: Reviews;
  readonly #operator: Operator<Operations>;

  constructor(options: ClientOptions) {
    this.#operator = new Operator<Operations>(new Connection(options), OPERATIONS);
    this.tools = new GatewayTools(this.#operator);
    this.servers = new Servers(this.#operator);
    this.activity = new Activity(this.#operator);
    this.reviews = new Reviews(this.#operator);
  }

  /** What works. */
  async health(options?: RequestOptions): Promise<GetHealthAnswer> {
    return await this.#operator.send("get_health", {}, options);
  }
}

/** Tools, prompts and resources of the MCP servers. */
export class GatewayTools {
  readonly #operator: Operator<Operations>;

  constructor(operator: Operator<Operations>) {
    this.#operator = operator;
  }

  async search(
    query: string,
    search: Omit<ToolSearchRequest, "query"> = {},
    options?: RequestOptions,
  ): Promise<ToolSearchAnswer> {
    return await this.#operator.send("search_tools", { body: { query, ...search } }, options);
  }

  list(list: ListOptions<ListToolsQuery> = {}, options?: RequestOptions): Pages<Tool> {
    return this.#operator.list("list_tools", list, options);
  }

  async get(id: string, query: GetToolQuery = {}, options?: RequestOptions): Promise<Tool> {
    return await this.#operator.send("get_tool", { path: { tool_id: id }, query }, options);
  }

  /** Call a tool. One that fails has an answer, too: `is_error` is true. A call is never sent twice. */
  async call(id: string, args: Record<string, unknown> = {}, options: RequestOptions = {}): Promise<CallResult> {
    const timeoutMs = options.timeoutMs ?? Math.max(this.#operator.connection.timeoutMs, CALL_TIMEOUT_MS);
    return await this.#operator.send("call_tool", { body: { id, arguments: args } }, { ...options, timeoutMs });
  }

  /** Return a TypeScript module with the types of tools: of all, or of some servers and `server__tool` names. */
  async types(names: string[] = [], types: { compact?: boolean } = {}, options?: RequestOptions): Promise<string> {
    const query = { filter: names.join(","), compact: types.compact ? "true" : undefined };
    return await this.#operator.connection.text(this.#operator.exchange("get_typescript", { query }), options);
  }
}

/** The MCP servers, and how they are doing. */
export class Servers {
  readonly #operator: Operator<Operations>;

  constructor(operator: Operator<Operations>) {
    this.#operator = operator;
  }

  list(list: ListOptions<{ cursor?: string }> = {}, options?: RequestOptions): Pages<Server> {
    return this.#operator.list("list_servers", list, options);
  }
}

/** What was searched and called, the newest first. */
export class Activity {
  readonly #operator: Operator<Operations>;

  constructor(operator: Operator<Operations>) {
    this.#operator = operator;
  }

  list(list: ListOptions<ListActivityQuery> = {}, options?: RequestOptions): Pages<ActivityEntry> {
    return this.#operator.list("list_activity", list, options);
  }
}

/** New and changed definitions; a decision needs the gateway's token. */
export class Reviews {
  readonly #operator: Operator<Operations>;

  constructor(operator: Operator<Operations>) {
    this.#operator = operator;
  }

  list(list: ListOptions<ListReviewsQuery> = {}, options?: RequestOptions): Pages<Review> {
    return this.#operator.list("list_reviews", list, options);
  }

  /** Approve exactly these definitions, once a person has reviewed them. */
  async approve(digests: string[], options?: RequestOptions): Promise<ReviewDecision> {
    return await this.#operator.send("approve_reviews", { body: { digests } }, options);
  }

  /** Keep exactly these definitions out, until they change again. */
  async reject(digests: string[], options?: RequestOptions): Promise<ReviewDecision> {
    return await this.#operator.send("reject_reviews", { body: { digests } }, options);
  }
}
