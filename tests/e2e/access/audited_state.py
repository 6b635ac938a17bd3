"""An installation with something in every state that a request or a command can change."""

import asyncio
from dataclasses import dataclass
from pathlib import Path

from tests.conftest import Installation
from tests.contracts.builders import Record, classify, tools
from tests.e2e import catalog_files
from tests.e2e.commands import run
from tests.e2e.gateway.machines import mcp_server
from tests.support.token_issuer import Issuer, an_issuer
from tests.unit.tools.sources_http.builders import write_config
from toolscript.core.postgres.pool import Pool, open_pool
from toolscript.core.taxonomy import Skill
from toolscript.tools.model.proposals import Proposal, ProposalEvidence
from toolscript.tools.postgres.assignments import PostgresAssignments
from toolscript.tools.postgres.catalog import PostgresCatalog
from toolscript.tools.postgres.centroids import PostgresSkillVectors
from toolscript.tools.postgres.dirty_set import PostgresDirtySet
from toolscript.tools.postgres.skills import PostgresTaxonomy
from toolscript.tools.postgres.suggestions import PostgresSuggestions

ADMIN = "the-admin-token-of-this-test"
MANAGER, WRITER = "mia", "will"
ASKED_FOR = "Harbour", "Weather", "Trains"


@dataclass(frozen=True)
class State:
    environment: dict[str, str]
    items: list[int]
    changes: list[int]
    suggestions: dict[str, int]

    @property
    def manager(self) -> str:
        return an_issuer().token(sub=MANAGER, scope="tools:manage tools:read")

    @property
    def writer(self) -> str:
        return an_issuer().token(sub=WRITER)


def prepared(installation: Installation, folder: Path) -> State:
    environment = {
        **installation.environment,
        "TOOLSCRIPT_ADMIN_TOKEN": ADMIN,
        "TOOLSCRIPT_JWT_KEYS": str(an_issuer().write(folder / "keys.json")),
        "TOOLSCRIPT_JWT_ISSUER": Issuer.name,
        "TOOLSCRIPT_HOLD_CHANGES": "true",
        "TOOLSCRIPT_SYNC_CONFIG": write_config(folder / "servers.json", {"notes": mcp_server("faulty")}),
    }
    rows = catalog_files.rows(8)
    run(environment, "sync", str(catalog_files.write(folder / "items.jsonl", rows)))
    changed = [{**row, "description": "Something else."} for row in rows[:4]]
    run(environment, "sync", str(catalog_files.write(folder / "changed.jsonl", changed)))
    run(environment, "worker", "--drain")
    return asyncio.run(_with_decisions(environment))


async def _with_decisions(environment: dict[str, str]) -> State:
    async with open_pool(environment["TOOLSCRIPT_POSTGRES_URL"], size=4) as pool:
        record = _record(pool)
        for name in ("mail", "maps"):
            await record.taxonomy.add(Skill(name, name.title()), "ann")
        await record.catalog.store("by-hand", tools(6))
        items = [seen.id for seen in await record.catalog.scan(0, 1_000)]
        for item_id, name in zip(items[-6:], ASKED_FOR, strict=False):
            await classify(record, item_id, asks_for=name)
        await record.suggestions.submit([_proposal(items[-1])])
        pending = await record.suggestions.page(0, 10)
        changes = await pool_changes(pool)
        return State(environment, items, changes, {each.suggested.name: each.id for each in pending})


async def pool_changes(pool: Pool) -> list[int]:
    async with pool.connection() as conn:
        held = await conn.execute("SELECT id FROM mcp.item_changes WHERE state = 'held' ORDER BY id")
        rows = await held.fetchall()
    return [int(str(row[0])) for row in rows]


def _record(pool: Pool) -> Record:
    async def let_pass(_seconds: float) -> None: ...

    return Record(
        PostgresCatalog(pool),
        PostgresDirtySet(pool),
        let_pass,
        PostgresTaxonomy(pool),
        PostgresAssignments(pool),
        PostgresSuggestions(pool),
        PostgresSkillVectors(pool),
    )


def _proposal(item_id: int) -> Proposal:
    skill = Skill("post", "Post", "Letters.")
    return Proposal(skill, {item_id: 0.8}, ProposalEvidence(1, 10))
