// A user's program: it compiles under strict settings, and runs against a real service and gateway.
import { Client, GatewayClient, type gateway, type service, ToolscriptError } from "toolscript-client";

declare const process: { env: Record<string, string | undefined> };

const tools: service.ListedTool[] = [];
const client = new Client({ url: process.env["SERVICE_URL"] ?? "", token: process.env["SERVICE_TOKEN"] });
for await (const tool of client.tools.list({ page_size: 7 })) tools.push(tool);

const found: service.ToolSearchAnswer = await client.tools.search("schedule a meeting", { limit: 1, explain: true });
const skills: service.SkillShown[] = await client.skills.list({ page_size: 5 }).all();
const put: service.DocumentsPut = await client.documents.put([
  { id: "whales", text: "Whales are mammals.", metadata: { year: 2026 } },
]);
const [whales] = (await client.documents.search("whales", { limit: 1 })).results;
const stored: service.DocumentShown = await client.documents.get("whales");
const deleted: service.DocumentsDeleted = await client.documents.delete(["whales", "unicorns"]);
const knowledge: service.LibrarySearchAnswer = await client.knowledge.search("compost", { kind: "chunk", limit: 1 });
const chunk: service.LibraryChunk = await client.knowledge.getChunk(knowledge.results[0]?.chunk_id ?? "");

const own = new GatewayClient({ url: process.env["GATEWAY_URL"] ?? "", token: process.env["GATEWAY_TOKEN"] });
const hits: gateway.ToolHit[] = (await own.tools.search("add two numbers")).results;
const called: gateway.CallResult = await own.tools.call("plain__add", { a: 2, b: 40 });
const failed: gateway.CallResult = await own.tools.call("plain__fail");
const servers: gateway.Server[] = await own.servers.list({ page_size: 1 }).all();
const add: gateway.Tool = await own.tools.get("plain__add");

async function codeOf(request: Promise<unknown>): Promise<string | undefined> {
  try {
    await request;
  } catch (error) {
    if (error instanceof ToolscriptError && error.status !== undefined && error.requestId) return error.code;
    throw error;
  }
  return undefined;
}

// @ts-expect-error A service has no tools to call.
client.tools.call;
// @ts-expect-error The ids of a service's tools are numbers.
() => client.tools.get("plain__add");
// @ts-expect-error There is no such option.
() => client.tools.search("x", { limits: 3 });
// @ts-expect-error A hit has no such field.
hits[0]?.nothing;

console.log(
  JSON.stringify({
    tools: tools.length,
    unique: new Set(tools.map((tool) => tool.id)).size,
    found: found.results.map((hit) => hit.name),
    skills: skills.length,
    put: put.counts,
    whales: whales?.id,
    text: stored.text,
    deleted,
    source: chunk.source.title,
    hit: hits[0]?.id,
    sum: called.structured_content,
    failed: failed.is_error,
    servers: servers.map((server) => server.name),
    add: [add.id, add.server, Object.keys(add.input_schema ?? {}).length > 0],
    types: (await own.tools.types(["plain"])).includes("add"),
    health: [(await client.health()).status, (await own.health()).ready],
    codes: [
      await codeOf(client.tools.get(999_999)),
      await codeOf(client.documents.search("x", { limit: 1000 })),
      await codeOf(new Client({ url: process.env["SERVICE_URL"] ?? "", token: "wrong" }).documents.get("whales")),
      await codeOf(own.tools.get("plain__nothing")),
    ],
  }),
);
