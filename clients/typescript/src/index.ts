/**
 * A client of Toolscript over `fetch`: `Client` for a service, `GatewayClient` for a gateway.
 *
 * Fields of requests and answers have the names of the API. Their types are in `service` and `gateway`.
 */

export type * as gateway from "./api/gateway.ts";
export type * as service from "./api/service.ts";
export type { ClientOptions, RequestOptions } from "./connection.ts";
export { type Documents, type NewDocument, PutError } from "./documents.ts";
export { type ErrorCode, ToolscriptError } from "./errors.ts";
export { type Activity, GatewayClient, type GatewayTools, type Servers } from "./gateway.ts";
export type { ListOptions, Page, Pages } from "./resource.ts";
export {
  type Audit,
  type Changes,
  Client,
  type Curation,
  type Jobs,
  type Knowledge,
  type Searches,
  type Skills,
  type Sources,
  type Suggestions,
  type Tenants,
  type Tools,
} from "./service.ts";
