// What json-schema-to-typescript makes of schemas. Usage: node their_types.mjs FILE, run in the folder with the
// packages. FILE is a JSON object of schemas by name. Prints a JSON object of modules by name.
import { createRequire } from "node:module";
import { readFileSync } from "node:fs";

const { compile } = createRequire(`${process.cwd()}/`)("json-schema-to-typescript");
const options = { additionalProperties: false, bannerComment: "", format: false, ignoreMinAndMaxItems: true, unknownAny: true };

const modules = {};
for (const [name, schema] of Object.entries(JSON.parse(readFileSync(process.argv[2], "utf-8")))) {
  modules[name] = await compile(schema, "Theirs", options);
}
process.stdout.write(JSON.stringify(modules));
