// The TypeScript SDK as a client: does the steps on standard input, and prints what it saw, as python_client.py does.
import { createRequire } from "node:module";
import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

// The SDK says on standard output what a server does not have.
console.debug = console.log = console.error;
const here = createRequire(`${process.cwd()}/package.json`);
const load = (name) => import(pathToFileURL(here.resolve(name)));
const { Client, StreamableHTTPClientTransport } = await load("@modelcontextprotocol/client");
const { StdioClientTransport } = await load("@modelcontextprotocol/client/stdio");

const { target, steps } = JSON.parse(readFileSync(0, "utf8"));
const KINDS = ["tools", "prompts", "resources"];
const LISTS = {
  "tools/list": ["listTools", "tools"],
  "prompts/list": ["listPrompts", "prompts"],
  "resources/list": ["listResources", "resources"],
  "resources/templates/list": ["listResourceTemplates", "resourceTemplates"],
};
const SINGLE = { "prompts/get": "getPrompt", "resources/read": "readResource", "completion/complete": "complete" };
const sleep = (seconds) => new Promise((done) => setTimeout(done, seconds * 1000));

let heard;
const clear = () => (heard = { progress: [], logs: [], asked: [], changes: new Set() });
clear();
const noted = () => {
  const all = { ...heard, changes: [...heard.changes].sort() };
  return Object.fromEntries(Object.entries(all).filter(([, found]) => found.length));
};

const capabilities = { elicitation: {}, sampling: {}, roots: {} };
const client = new Client({ name: "compares", version: "1" }, { capabilities, versionNegotiation: { mode: "auto" } });
const answers = {
  "elicitation/create": { action: "accept", content: { name: "Ada", check: true, integer: 5, number: 1.5 } },
  "sampling/createMessage": {
    role: "assistant",
    content: { type: "text", text: "sampled" },
    model: "a-model",
    stopReason: "endTurn",
  },
  "roots/list": { roots: [{ uri: "file:///srv/project", name: "project" }] },
};
for (const [method, answer] of Object.entries(answers)) {
  client.setRequestHandler(method, async (request) => {
    heard.asked.push({ [method]: method === "roots/list" ? {} : request.params });
    return answer;
  });
}
client.setNotificationHandler("notifications/message", async (message) => void heard.logs.push(message.params));
for (const kind of KINDS) {
  const method = `notifications/${kind}/list_changed`;
  client.setNotificationHandler(method, async () => void heard.changes.add(method));
}

async function wholeList(method) {
  const [name, field] = LISTS[method];
  const entries = [];
  let cursor;
  do {
    const page = await client[name]({ cursor: cursor ?? undefined }, { cacheMode: "bypass" });
    entries.push(...page[field]);
    cursor = page.nextCursor;
  } while (cursor);
  return { [field]: entries };
}

// Until 2025-11-25 a client sets its log level once, since then with each request.
const LOG_LEVEL = { "io.modelcontextprotocol/logLevel": "debug" };
const isModern = () => client.getNegotiatedProtocolVersion()?.startsWith("2026");

async function request({ method, params, cancel_after: cancelAfter }) {
  if (LISTS[method]) return wholeList(method);
  if (SINGLE[method]) return client[SINGLE[method]](params);
  const options = {
    onprogress: ({ progress, total, message }) => heard.progress.push([progress, total ?? null, message ?? null]),
    ...(cancelAfter ? { signal: AbortSignal.timeout(cancelAfter * 1000) } : {}),
  };
  return client.callTool(isModern() ? { ...params, _meta: LOG_LEVEL } : params, options);
}

async function outcome(step) {
  try {
    const result = await request(step);
    for (let waited = 0; step.wait_for && waited < 8 && !heard.changes.has(step.wait_for); waited += 0.05) await sleep(0.05);
    return { result };
  } catch (error) {
    if (step.cancel_after) return { error: { code: "cancelled", message: "" } };
    return { error: { code: error.code ?? error.constructor.name, message: String(error.message).slice(0, 300) } };
  }
}

const transport = target.url
  ? new StreamableHTTPClientTransport(new URL(target.url))
  : new StdioClientTransport({ command: target.command[0], args: target.command.slice(1), env: target.env, stderr: "ignore" });
await client.connect(transport);
try {
  await client.listen({ toolsListChanged: true, promptsListChanged: true, resourcesListChanged: true });
} catch {
  // Servers of the older protocol report changes unasked.
}
if (!isModern() && client.getServerCapabilities()?.logging)
  await client.setLoggingLevel("debug");
await sleep(1);
const observed = {
  "capabilities: server": { result: client.getServerCapabilities() },
  protocol: { result: client.getNegotiatedProtocolVersion() },
};
for (const step of steps) {
  clear();
  const result = await outcome(step);
  observed[step.id] = { ...result, ...noted() };
}
await client.close();
process.stdout.write(JSON.stringify(observed), () => process.exit(0));
