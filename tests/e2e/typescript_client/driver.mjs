// The driver of the behaviour suite: operations as lines of JSON on stdin, answers on stdout.
// node driver.mjs MODULE, where MODULE is the built client; TOOLSCRIPT_URL and TOOLSCRIPT_TOKEN name the server.
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";

const { Client, GatewayClient, ToolscriptError } = await import(pathToFileURL(process.argv[2]).href);
const options = { url: process.env.TOOLSCRIPT_URL, token: process.env.TOOLSCRIPT_TOKEN };
const service = new Client(options);
const gateway = new GatewayClient(options);

const listed = async (pages) => ({ results: await pages.all() });

async function* each(entries) {
  yield* entries;
}

async function put({ documents }) {
  const { results, counts } = await service.documents.put(each(documents));
  return { results: results.map(({ line: _, ...result }) => result), counts };
}

// Tools and errors of both have the same shape: a request that only one of them has goes to that one.
const OPERATIONS = {
  "tools.search": ({ query, ...search }) => service.tools.search(query, search),
  "tools.list": (list) => listed(service.tools.list(list)),
  "tools.get": ({ id }) => service.tools.get(id),
  "tools.call": ({ id, arguments: args }) => gateway.tools.call(id, args),
  "tools.types": async ({ names }) => ({ module: await gateway.tools.types(names) }),
  "servers.list": (list) => listed(gateway.servers.list(list)),
  "skills.search": ({ query, ...search }) => service.skills.search(query, search),
  "skills.list": (list) => listed(service.skills.list(list)),
  "skills.get": ({ id }) => service.skills.get(id),
  "documents.put": put,
  "documents.search": ({ query, ...search }) => service.documents.search(query, search),
  "documents.get": ({ id }) => service.documents.get(id),
  "documents.list": (list) => listed(service.documents.list(list)),
  "documents.delete": ({ ids }) => service.documents.delete(ids),
  "knowledge.search": ({ query, ...search }) => service.knowledge.search(query, search),
  "knowledge.list_sources": (list) => listed(service.knowledge.listSources(list)),
};

async function answerOf({ operation, arguments: args }) {
  try {
    return { answer: await OPERATIONS[operation](args) };
  } catch (error) {
    if (!(error instanceof ToolscriptError)) throw error;
    return { error: { code: error.code, message: error.message } };
  }
}

for await (const line of createInterface({ input: process.stdin })) {
  process.stdout.write(`${JSON.stringify(await answerOf(JSON.parse(line)))}\n`);
}
