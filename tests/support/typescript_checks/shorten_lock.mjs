// Rewrites package-lock.json with a line for each package and without the address of any registry.
import { readFileSync, writeFileSync } from "node:fs";

const NOT_NEEDED = ["resolved", "funding", "license", "engines"];
const file = new URL("package-lock.json", import.meta.url);
const { packages, ...rest } = JSON.parse(readFileSync(file, "utf-8"));

const needed = (entry) => Object.fromEntries(Object.entries(entry).filter(([key]) => !NOT_NEEDED.includes(key)));
const lines = Object.entries(packages).map(([at, entry]) => `    ${JSON.stringify(at)}: ${JSON.stringify(needed(entry))}`);
const head = Object.entries(rest).map(([key, value]) => `  ${JSON.stringify(key)}: ${JSON.stringify(value)},\n`).join("");
writeFileSync(file, `{\n${head}  "packages": {\n${lines.join(",\n")}\n  }\n}\n`);
