// Servers that are busy, slow, gone or confused, on real sockets.
import assert from "node:assert/strict";
import { test } from "node:test";
import { Client, GatewayClient, PutError, ToolscriptError } from "../dist/index.js";
import { acknowledge, refuse, sendJson, serve } from "./server.mjs";

const FOUND = { query_id: "q", results: [], metadata: {} };
const CALLED = { content: [], structured_content: null, is_error: false };

/** Run with a server, and close it whatever happens. */
async function withServer(answer, run) {
  const server = await serve(answer);
  try {
    await run(server);
  } finally {
    await server.close();
  }
}

async function errorOf(promise, kind = ToolscriptError) {
  try {
    await promise;
  } catch (error) {
    assert.ok(error instanceof kind, `${error}`);
    return error;
  }
  return assert.fail("nothing was thrown");
}

function documents(count) {
  return Array.from({ length: count }, (_, number) => ({ id: `d${number}`, text: `text ${number}` }));
}

for (const [status, code] of [[429, "RATE_LIMITED"], [503, "UNAVAILABLE"]]) {
  test(`after ${status} a search is sent again when Retry-After has passed`, async () => {
    const answer = (_, response, __, count) =>
      count === 1 ? refuse(response, status, code, { "retry-after": "1" }) : sendJson(response, 200, FOUND);
    await withServer(answer, async ({ url, requests }) => {
      assert.deepEqual(await new Client({ url }).tools.search("x"), FOUND);
      assert.equal(requests.length, 2);
      // A timer may be a little early.
      assert.ok(requests[1].at - requests[0].at >= 990, "it did not wait");
    });
  });

  test(`after ${status} a call of a tool is not sent again`, async () => {
    const answer = (_, response) => refuse(response, status, code, { "retry-after": "0" });
    await withServer(answer, async ({ url, requests }) => {
      const error = await errorOf(new GatewayClient({ url }).tools.call("files__write", {}));
      assert.deepEqual([error.code, error.status, error.retryAfterMs, requests.length], [code, status, 0, 1]);
    });
  });
}

test("without Retry-After the pauses grow, and the last error is thrown", async () => {
  await withServer((_, response) => refuse(response, 503, "UNAVAILABLE"), async ({ url, requests }) => {
    const error = await errorOf(new Client({ url, retries: 2 }).skills.get("a"));
    assert.deepEqual([error.code, error.status, error.requestId], ["UNAVAILABLE", 503, "r-1"]);
    assert.equal(requests.length, 3);
    const [first, second] = [requests[1].at - requests[0].at, requests[2].at - requests[1].at];
    assert.ok(first >= 240 && second >= 490, `${first} ${second}`);
  });
});

test("a long Retry-After is left to the caller", async () => {
  const answer = (_, response) => refuse(response, 429, "RATE_LIMITED", { "retry-after": "3600" });
  await withServer(answer, async ({ url, requests }) => {
    const error = await errorOf(new Client({ url }).tools.search("x"));
    assert.deepEqual([error.retryAfterMs, requests.length], [3_600_000, 1]);
  });
});

test("a Retry-After may be a date", async () => {
  const headers = { "retry-after": new Date(Date.now() + 7_200_000).toUTCString() };
  await withServer((_, response) => refuse(response, 503, "UNAVAILABLE", headers), async ({ url }) => {
    const { retryAfterMs } = await errorOf(new Client({ url }).tools.search("x"));
    assert.ok(retryAfterMs > 7_100_000 && retryAfterMs <= 7_200_000, `${retryAfterMs}`);
  });
});

test("what only an administrator can change is not tried again", async () => {
  const details = { retryable: false, hint: "toolscript migrate" };
  const answer = (_, response) => refuse(response, 503, "UNAVAILABLE", {}, details);
  await withServer(answer, async ({ url, requests }) => {
    const error = await errorOf(new Client({ url }).tools.search("x"));
    assert.deepEqual([error.hint, requests.length], ["toolscript migrate", 1]);
  });
});

test("a deletion that was refused is sent again, one that was lost is not", async () => {
  const answer = (request, response, _, count) => {
    if (count === 3) request.socket.destroy();
    else if (count === 1) refuse(response, 429, "RATE_LIMITED", { "retry-after": "0" });
    else sendJson(response, 200, { deleted: ["a"], missing: [] });
  };
  await withServer(answer, async ({ url, requests }) => {
    const client = new Client({ url });
    assert.deepEqual(await client.documents.delete(["a"]), { deleted: ["a"], missing: [] });
    const error = await errorOf(client.documents.delete("a"));
    assert.deepEqual([error.code, error.status, requests.length], ["UNAVAILABLE", undefined, 3]);
  });
});

test("a search whose connection is lost is sent again, a call is not", async () => {
  const answer = (request, response, _, count) => {
    if (request.url.endsWith("/call") || count === 1) request.socket.destroy();
    else sendJson(response, 200, FOUND);
  };
  await withServer(answer, async ({ url, requests }) => {
    const gateway = new GatewayClient({ url });
    assert.deepEqual(await gateway.tools.search("x"), FOUND);
    assert.equal(requests.length, 2);
    const error = await errorOf(gateway.tools.call("files__write", {}));
    assert.match(error.message, /does not answer/);
    assert.equal(requests.length, 3);
  });
});

test("a put goes on when its server is killed in the middle and comes back", async () => {
  const stored = new Set();
  const store = (response, body) => {
    for (const line of body.split("\n")) stored.add(JSON.parse(line).id);
    acknowledge(response, body);
  };
  let revived;
  const first = await serve((request, response, body, count) => {
    if (count === 1) return store(response, body);
    request.socket.destroy();
    revived = first.close().then(() => serve((_, again, lines) => store(again, lines), first.port));
  });
  try {
    const put = await new Client({ url: first.url }).documents.put(documents(500));
    assert.deepEqual(put.counts, { created: 500, updated: 0, unchanged: 0, refused: 0 });
    assert.deepEqual(put.results.map((result) => result.line), documents(500).map((_, index) => index + 1));
    assert.equal(stored.size, 500);
  } finally {
    await (await revived).close();
  }
});

test("a put whose server stays away says what was acknowledged", async () => {
  const server = await serve((request, response, body, count) => {
    if (count === 1) return acknowledge(response, body);
    request.socket.destroy();
    void server.close();
  });
  const error = await errorOf(new Client({ url: server.url, retries: 1 }).documents.put(documents(500)), PutError);
  assert.deepEqual([error.code, error.status], ["UNAVAILABLE", undefined]);
  assert.match(error.message, /does not answer/);
  assert.equal(error.acknowledged.counts.created, 200);
  assert.equal(error.acknowledged.results.at(-1).id, "d199");
});

test("what a server leaves undone when it stops is put again", async () => {
  const busy = { code: "UNAVAILABLE", message: "the index is away", details: { retry_after_seconds: 0 } };
  const answer = (_, response, body, count) =>
    count < 3 ? acknowledge(response, body, 2, busy) : acknowledge(response, body);
  await withServer(answer, async ({ url, requests }) => {
    const put = await new Client({ url, retries: 1 }).documents.put(documents(5));
    const expected = documents(5).map(({ id }, index) => [id, index + 1]);
    assert.deepEqual(put.results.map(({ id, line }) => [id, line]), expected);
    assert.deepEqual(requests.map(({ body }) => body.split("\n").length), [5, 3, 1]);
  });
});

test("a put that the server ends for good throws its error", async () => {
  const full = { code: "PLAN_EXCEEDED", message: "the plan has room for 2", details: { hint: "delete some" } };
  await withServer((_, response, body) => acknowledge(response, body, 2, full), async ({ url, requests }) => {
    const error = await errorOf(new Client({ url }).documents.put(documents(5)), PutError);
    assert.deepEqual([error.code, error.hint], ["PLAN_EXCEEDED", "delete some"]);
    assert.equal(error.acknowledged.counts.created, 2);
    assert.equal(requests.length, 1);
  });
});

test("an answer to a put without its last line is no answer", async () => {
  const answer = (_, response) => sendJson(response, 200, { id: "d0", state: "created", chunk_count: 1 });
  await withServer(answer, async ({ url }) => {
    const error = await errorOf(new Client({ url }).documents.put(documents(1)), PutError);
    assert.match(error.message, /is not Toolscript/);
  });
});

test("a put reads its input as it sends it", async () => {
  await withServer((_, response, body) => acknowledge(response, body), async ({ url }) => {
    let made = 0;
    async function* endless() {
      for (;;) yield { id: `d${made++}`, text: "x" };
    }
    let seen = 0;
    for await (const result of new Client({ url }).documents.putStream(endless())) {
      assert.equal(result.id, `d${seen}`);
      seen += 1;
      if (seen === 600) break;
    }
    assert.equal(made, 601);
  });
});

test("a stream that goes silent ends after the timeout, and is not asked again", async () => {
  const answer = (_, response) => {
    response.writeHead(200, { "content-type": "application/json" });
    response.write('{"query_id": ');
  };
  await withServer(answer, async ({ url, requests }) => {
    const began = performance.now();
    const error = await errorOf(new Client({ url, timeoutMs: 200 }).tools.search("x"));
    assert.deepEqual([error.code, error.status, error.cause.name], ["UNAVAILABLE", undefined, "TimeoutError"]);
    assert.match(error.hint, /timeoutMs/);
    assert.equal(requests.length, 1);
    assert.ok(performance.now() - began >= 190);
  });
});

test("a server that does not answer at all ends after the timeout of the request", async () => {
  await withServer(() => {}, async ({ url }) => {
    const error = await errorOf(new Client({ url }).tools.search("x", {}, { timeoutMs: 100 }));
    assert.match(error.message, /was silent for 100 ms/);
  });
});

test("a stream that is slow but goes on is read to its end", async () => {
  const text = JSON.stringify(FOUND);
  const answer = (_, response) => {
    response.writeHead(200, { "content-type": "application/json" });
    let sent = 0;
    const timer = setInterval(() => {
      response.write(text.slice(sent, (sent += 4)));
      if (sent >= text.length) response.end(() => clearInterval(timer));
    }, 100);
  };
  await withServer(answer, async ({ url }) => {
    const began = performance.now();
    assert.deepEqual(await new Client({ url, timeoutMs: 700 }).tools.search("x"), FOUND);
    assert.ok(performance.now() - began > 700, "the whole answer took longer than the timeout");
  });
});

test("a signal ends a request, and a pause between two", async () => {
  const answer = (request, response) => {
    if (request.url.endsWith("/tools/search")) refuse(response, 429, "RATE_LIMITED", { "retry-after": "50" });
  };
  await withServer(answer, async ({ url, requests }) => {
    const client = new Client({ url });
    for (const resource of [client.tools, client.skills]) {
      const signal = AbortSignal.timeout(100);
      await assert.rejects(resource.search("x", {}, { signal }), { name: "TimeoutError" });
    }
    await assert.rejects(client.tools.search("x", {}, { signal: AbortSignal.abort() }), { name: "AbortError" });
    assert.equal(requests.length, 2);
  });
});

test("a page that changes hides and repeats no entry that stays", async () => {
  let entries = ["a", "c", "e", "g", "i"];
  const answer = (request, response, _, count) => {
    const query = new URL(request.url, "http://x").searchParams;
    if (count === 2) entries = ["b", "e", "f", "g", "i"];
    const after = entries.filter((name) => name > (query.get("cursor") ?? ""));
    const results = after.slice(0, Number(query.get("limit"))).map((name) => ({ name }));
    sendJson(response, 200, { results, next_cursor: after.length > results.length ? results.at(-1).name : null });
  };
  await withServer(answer, async ({ url }) => {
    const names = [];
    for await (const source of new Client({ url }).sources.list({ page_size: 2 })) names.push(source.name);
    assert.deepEqual(names, ["a", "c", "e", "f", "g", "i"]);
  });
});

test("a list whose next page is the same page ends with an error", async () => {
  const answer = (_, response) => sendJson(response, 200, { results: [1], next_cursor: "x" });
  await withServer(answer, async ({ url, requests }) => {
    const error = await errorOf(new Client({ url }).jobs.list().all());
    assert.match(error.message, /does not end/);
    assert.equal(requests.length, 2);
  });
});

for (const [what, status, body] of [
  ["a page of another program", 200, "<html>"],
  ["an error of another program", 404, "<html>"],
  ["a list of something", 200, "[1]"],
  ["nothing", 200, ""],
]) {
  test(`${what} is not taken for an answer`, async () => {
    const answer = (_, response) => {
      response.writeHead(status);
      response.end(body);
    };
    await withServer(answer, async ({ url }) => {
      const client = new Client({ url });
      const put = () => client.documents.put(documents(1));
      for (const request of [() => client.tools.search("x"), () => client.tools.list().all(), put]) {
        const error = await errorOf(request());
        assert.equal(error.code, "UNAVAILABLE");
        assert.match(error.message, /is not Toolscript/);
        assert.match(error.hint, /toolscript serve/);
      }
    });
  });
}

test("a redirect is not followed with the token", async () => {
  await withServer(() => assert.fail("it was followed"), async (other) => {
    const answer = (_, response) => {
      response.writeHead(307, { location: `${other.url}/api/v1/tools` });
      response.end();
    };
    await withServer(answer, async ({ url }) => {
      const error = await errorOf(new Client({ url, token: "secret" }).tools.list().all());
      assert.equal(error.code, "UNAVAILABLE");
      assert.equal(other.requests.length, 0);
    });
  });
});

test("an unready service answers how it is", async () => {
  const parts = { index: { ok: false, note: "away" } };
  const answer = (_, response) => sendJson(response, 503, { status: "unready", parts });
  await withServer(answer, async ({ url, requests }) => {
    assert.deepEqual(await new Client({ url }).health(), { status: "unready", parts });
    assert.equal(requests.length, 1);
  });
});

test("requests have the token, the path, the query and the body of the API", async () => {
  const page = { results: [], next_cursor: null };
  const answer = (request, response) => sendJson(response, 200, request.url.endsWith("/call") ? CALLED : page);
  await withServer(answer, async ({ url, requests }) => {
    const gateway = new GatewayClient({ url: `${url}/below/`, token: "t-1" });
    await gateway.tools.list({ server: ["a", "b"], page_size: 7, include_schemas: true }).all();
    await gateway.tools.get("a/b?c#d é__x", { kind: "prompt" });
    await gateway.tools.call("a__b", { text: "é" });
    assert.deepEqual(
      requests.map((request) => [request.method, request.url, request.body]),
      [
        ["GET", "/below/api/v1/tools?server=a&server=b&include_schemas=true&limit=7", ""],
        ["GET", "/below/api/v1/tools/a%2Fb%3Fc%23d%20%C3%A9__x?kind=prompt", ""],
        ["POST", "/below/api/v1/tools/call", '{"id":"a__b","arguments":{"text":"é"}}'],
      ],
    );
    assert.deepEqual(new Set(requests.map((request) => request.headers.authorization)), new Set(["Bearer t-1"]));
  });
});

test("an id that would lead to another path is refused before it is sent", async () => {
  const client = new Client({ url: "http://127.0.0.1:9" });
  for (const id of ["", ".", "..", "\ud800"]) {
    assert.equal((await errorOf(client.documents.get(id))).code, "VALIDATION_ERROR");
  }
});

test("an address or a token that cannot be used is refused at once, and not shown", () => {
  for (const options of [
    { url: "localhost" },
    { url: "ftp://localhost" },
    { url: "http://ann:pass-1@localhost" },
    { url: "http://localhost", token: "pass-1\n" },
  ]) {
    assert.throws(() => new Client(options), (error) => {
      assert.equal(error.code, "VALIDATION_ERROR");
      return error.hint !== "" && !`${error.message}${error.hint}`.includes("pass-1");
    });
  }
});
