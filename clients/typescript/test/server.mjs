// A server on a real socket, whose answers a test scripts.
import { createServer } from "node:http";

/** Start a server; `answer(request, response, body)` is called when the whole request has arrived. */
export async function serve(answer, port = 0) {
  const requests = [];
  const server = createServer((request, response) => {
    const parts = [];
    request.on("data", (part) => parts.push(part));
    request.on("error", () => {});
    request.on("end", () => {
      const body = Buffer.concat(parts).toString("utf8");
      const { method, url, headers } = request;
      requests.push({ method, url, headers, body, at: performance.now() });
      answer(request, response, body, requests.length);
    });
  });
  await new Promise((resolve) => server.listen(port, "127.0.0.1", resolve));
  const close = () =>
    new Promise((resolve) => {
      server.close(resolve);
      server.closeAllConnections();
    });
  return { url: `http://127.0.0.1:${server.address().port}`, port: server.address().port, requests, close };
}

export function sendJson(response, status, value, headers = {}) {
  response.writeHead(status, { "content-type": "application/json", "x-request-id": "r-1", ...headers });
  response.end(JSON.stringify(value));
}

export function refuse(response, status, code, headers = {}, details = {}) {
  sendJson(response, status, { error: { code, message: `refused: ${code}`, details } }, headers);
}

/** Answer a put as the service does: a line for each document, and a last one with the counts. */
export function acknowledge(response, body, done = Infinity, error = undefined) {
  const results = body.split("\n").slice(0, done).map((line, index) => {
    return { id: JSON.parse(line).id, state: "created", chunk_count: 1, line: index + 1 };
  });
  const counts = { created: results.length, updated: 0, unchanged: 0, refused: 0 };
  const last = error ? { counts, error } : { counts };
  response.writeHead(200, { "content-type": "application/x-ndjson" });
  response.end([...results, last].map((line) => `${JSON.stringify(line)}\n`).join(""));
}
