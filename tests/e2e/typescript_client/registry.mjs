// Everything that an administrator does, through the client; prints what came of it.
import { setTimeout as pause } from "node:timers/promises";
import { Client } from "toolscript-client";

const client = new Client({ url: process.env.SERVICE_URL });
const on_behalf_of = "ann";

async function finished(job) {
  while (job.state === "queued" || job.state === "running") {
    await pause(50);
    job = await client.jobs.get(job.id);
  }
  return job.state;
}

const item = (name, description) => ({ id: name, server: "billing", name, description });
const items = [item("create_invoice", "Create an invoice"), item("send_reminder", "Remind a customer to pay")];
const changed = [item("create_invoice", "Create an invoice and mail it to somebody else"), items[1]];

const added = await client.skills.add({ id: "billing", name: "Billing", on_behalf_of });
const renamed = await client.skills.change("billing", { description: "Invoices and payments", on_behalf_of });
const replaced = await client.skills.replace("billing", { name: "Invoices", on_behalf_of });

const imported = await finished(await client.jobs.startImport("billing", items, { prune: true }));
const tools = await client.tools.list({ source: "billing", page_size: 1 }).all();
const [invoice, reminder] = tools;
const set = await client.tools.setSkills(invoice.id, { skill_ids: ["billing"], on_behalf_of });
const ofSkill = await client.skills.listTools("billing", { page_size: 1 }).all();
const released = await client.tools.releaseSkills(invoice.id, { on_behalf_of });
const skills = await client.tools.getSkills(invoice.id);

const again = await finished(await client.jobs.startImport("billing", changed));
const changes = await client.changes.list({ page_size: 1 }).all();
const compared = changes.length ? await client.changes.get(changes[0].id) : undefined;
const decided = changes[0]?.state === "held" ? await client.changes.approve(changes[0].id, { on_behalf_of }) : changes[0];

await client.tools.delete(reminder.id);
const left = (await client.tools.list({ source: "billing" }).all()).map((tool) => tool.name);
const source = await client.sources.get("billing");
const removed = await finished(await client.sources.delete("billing"));
const sources = (await client.sources.list().all()).map(({ name }) => name);

console.log(
  JSON.stringify({
    skill: [added.id, renamed.description, replaced.name, (await client.skills.get("billing")).name],
    imported,
    tools: tools.map((tool) => tool.name),
    set: set.skills.map((skill) => [skill.skill_id, skill.source]),
    ofSkill: ofSkill.map((tool) => tool.name),
    released: [released.tool_id === invoice.id, skills.tool_id === invoice.id],
    again,
    changed: [compared?.name, compared?.changed_fields, decided?.id === changes[0]?.id],
    left,
    source: [source.name, source.tool_count],
    removed,
    sources,
    jobs: (await client.jobs.list({ page_size: 1 }).all()).length,
    suggestions: await client.suggestions.list({ state: "all" }).all(),
    audit: (await client.audit.list({ page_size: 2 }).all()).map((entry) => entry.actor).includes(on_behalf_of),
    tenants: (await client.tenants.list().all()).map((tenant) => tenant.name),
  }),
);
