/** The one error of the client: what a server answered, or why there is no answer. */

/** Codes of the API. A newer server may have others: treat those by `status`. */
export type ErrorCode =
  | "VALIDATION_ERROR"
  | "METHOD_NOT_ALLOWED"
  | "CONFLICT"
  | "TOO_LARGE"
  | "UNSUPPORTED"
  | "PLAN_EXCEEDED"
  | "UNAUTHORIZED"
  | "FORBIDDEN"
  | "NOT_FOUND"
  | "RATE_LIMITED"
  | "UNAVAILABLE"
  | "INTERNAL_ERROR"
  | (string & {});

export interface ErrorFacts {
  code: ErrorCode;
  hint?: string | undefined;
  status?: number | undefined;
  requestId?: string | undefined;
  details?: Record<string, unknown> | undefined;
  retryAfterMs?: number | undefined;
  cause?: unknown;
}

/** `message` says what went wrong, as the server puts it; `hint` says what to do next. */
export class ToolscriptError extends Error {
  override readonly name: string = "ToolscriptError";
  readonly code: ErrorCode;
  /** What to do next; empty where there is nothing to say. */
  readonly hint: string;
  /** HTTP status; undefined where there is no answer. */
  readonly status: number | undefined;
  /** Id of the request in the server's log. */
  readonly requestId: string | undefined;
  /** Facts for programs: `field`, `nearest`, `server` ... */
  readonly details: Record<string, unknown>;
  /** How long the server asks to wait. */
  readonly retryAfterMs: number | undefined;

  constructor(message: string, facts: ErrorFacts) {
    super(message, facts.cause === undefined ? undefined : { cause: facts.cause });
    this.code = facts.code;
    this.hint = facts.hint ?? "";
    this.status = facts.status;
    this.requestId = facts.requestId;
    this.details = facts.details ?? {};
    this.retryAfterMs = facts.retryAfterMs;
  }
}

/** Return the error in a parsed answer, or undefined if it does not have the API's shape. */
export function errorOf(answer: unknown, status?: number, headers?: Headers): ToolscriptError | undefined {
  const error = isObject(answer) && isObject(answer["error"]) ? answer["error"] : undefined;
  if (typeof error?.["code"] !== "string" || typeof error["message"] !== "string") return undefined;
  const { hint, ...details } = isObject(error["details"]) ? error["details"] : {};
  return new ToolscriptError(error["message"], {
    code: error["code"],
    hint: typeof hint === "string" ? hint : "",
    status,
    requestId: headers?.get("x-request-id") ?? undefined,
    details,
    retryAfterMs: retryAfterMs(headers?.get("retry-after") ?? details["retry_after_seconds"]),
  });
}

/** Return the milliseconds of a `Retry-After`, which is a number of seconds or a date. */
export function retryAfterMs(value: unknown, now: number = Date.now()): number | undefined {
  const text = String(value ?? "").trim();
  if (/^\d+(\.\d+)?$/.test(text)) return Number(text) * 1000;
  const date = text ? Date.parse(text) : Number.NaN;
  return Number.isNaN(date) ? undefined : Math.max(0, date - now);
}

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
