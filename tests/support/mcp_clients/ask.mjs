// Asks an MCP server with the TypeScript SDK, in both of its generations, and prints what each was told.
// node ask.mjs URL '{"name": "search_knowledge", "arguments": {...}}' [TOKEN]
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const [url, asked, token] = process.argv.slice(2);
const here = createRequire(`${process.cwd()}/package.json`);
const load = (name) => import(pathToFileURL(here.resolve(name)));
const me = { name: "asks", version: "1" };
const requestInit = token ? { headers: { Authorization: `Bearer ${token}` } } : {};

const GENERATIONS = {
  "1.x": async () => ({
    ...(await load("@modelcontextprotocol/sdk/client/index.js")),
    ...(await load("@modelcontextprotocol/sdk/client/streamableHttp.js")),
    options: {},
  }),
  "2.x": async () => ({
    ...(await load("@modelcontextprotocol/client")),
    options: { versionNegotiation: { mode: "auto" } },
  }),
};

async function ask({ Client, StreamableHTTPClientTransport, options }) {
  const client = new Client(me, options);
  try {
    await client.connect(new StreamableHTTPClientTransport(new URL(url), { requestInit }));
    const { tools } = await client.listTools();
    const result = await client.callTool(JSON.parse(asked));
    return { tools: tools.map((tool) => tool.name), result };
  } catch (error) {
    return { error: { name: error.constructor.name, code: error.code, status: error.status ?? error.data?.status, message: error.message } };
  } finally {
    await client.close();
  }
}

const told = {};
for (const [generation, loaded] of Object.entries(GENERATIONS)) told[generation] = await ask(await loaded());
console.log(JSON.stringify(told));
