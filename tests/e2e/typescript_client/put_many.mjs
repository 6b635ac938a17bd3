// Puts documents through a service that is killed meanwhile: node put_many.mjs COUNT RETRIES
import { readSync } from "node:fs";
import { Client, PutError } from "toolscript-client";

const [count, retries] = process.argv.slice(2).map(Number);
const client = new Client({ url: process.env.SERVICE_URL, token: process.env.SERVICE_TOKEN, retries });

async function* documents() {
  for (let number = 0; number < count; number += 1) {
    // The first request is acknowledged when the input is asked for more than the second.
    if (number === 300) {
      process.stdout.write("in the middle\n");
      readSync(0, Buffer.alloc(1));
    }
    yield { id: `d${number}`, text: `Lighthouse number ${number}.` };
  }
}

try {
  const { counts, results } = await client.documents.put(documents());
  console.log(JSON.stringify({ counts, ids: new Set(results.map((result) => result.id)).size }));
} catch (error) {
  if (!(error instanceof PutError)) throw error;
  console.log(JSON.stringify({ code: error.code, acknowledged: error.acknowledged.counts }));
}
