// The suite imports `globSync`, which Node has from 22 on, for a command we do not run. On an older Node it gets a
// function that says so, and everything else works.
import * as fs from "node:fs";
import { register } from "node:module";

const asModule = (source) => `data:text/javascript,${encodeURIComponent(source)}`;

if (!("globSync" in fs)) {
  const withGlob = asModule(`
    export * from "node:fs";
    export { default } from "node:fs";
    export const globSync = () => { throw new Error("needs Node 22"); };
  `);
  register(asModule(`
    export const resolve = (name, context, next) =>
      name === "fs" ? { url: ${JSON.stringify(withGlob)}, shortCircuit: true } : next(name, context);
  `));
}
