"""Every requirement with its id and title, and what of it is not built yet.

tests/house/test_requirements.py ties this to the tests both ways: a requirement is named by a test with
`@pytest.mark.requirement("ID")`, or it is deferred with a reason; an id that a test names is listed here.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Requirement:
    """`deferred`: nothing of it is built, and why. `missing`: what a part that is built still lacks."""

    id: str
    title: str
    deferred: str = ""
    missing: str = ""


ALL = (
    # Tool search
    Requirement(
        "BR-001",
        "A search embeds the query once, matches skills, finds items, then loads schemas; best first, ties by id",
    ),
    Requirement("BR-002", "Skills are matched by vector and by the words of their members"),
    Requirement(
        "BR-003",
        "Items are active, in a matched skill, reach the threshold, and are at most `limit`; "
        "their skills come with them",
    ),
    Requirement("BR-004", "Schemas are read in one query, only for what is returned, and null when that fails"),
    Requirement("BR-005", "A search can ask for tools, prompts or resources only"),
    Requirement("BR-006", "When no skill matches or the skill stage fails, all items are searched"),
    Requirement("BR-007", "An answer carries five timings, three counts, what really ran and what failed"),
    Requirement("BR-008", "The direct strategy skips the skill stage"),
    Requirement("BR-009", "Scores are 0 to 1; thresholds apply to the cosine before negatives become 0"),
    Requirement("BR-010", "The hybrid strategy runs both routes and loses no item of the direct one"),
    Requirement("EC-001", "With no skills in the index a search is direct"),
    Requirement("EC-002", "When every skill matches, the best `skill_limit` are used"),
    Requirement("EC-003", "A matched skill without items gives an empty answer"),
    Requirement("EC-004", "A query longer than 1,000 characters is refused"),
    Requirement("EC-005", "Special characters in a query are text and nothing else"),
    Requirement("EC-006", "The same query asked many times at once gets the same answer"),
    Requirement("EC-007", "A stale skill vector makes a search worse, not wrong"),
    Requirement("EC-008", "An item without skills is left out of hierarchical search, and counted"),
    Requirement("EC-009", "One deadline holds for the whole request, however slow the embedding is"),
    Requirement(
        "API-001",
        "Search over HTTP: POST /api/v1/search, GET /api/v1/search/skills and GET /api/v1/search/tools",
    ),
    Requirement("API-002", "Blank is 400, out of range is 422, and a failing part gives a flagged answer"),
    Requirement("API-003", "One error shape everywhere, and a request id on every answer and log line"),
    Requirement(
        "SLA-001",
        "Searches meet their time and throughput limits with the real engines",
        missing="the stages keep their limits and 100 searches a second are answered, but on two cores not with "
        "p95 below 100 ms: docs/scale.md; tests compare ratios, for machines are noisy",
    ),
    # Skills and the write path
    Requirement("SK-001", "People manage skills over HTTP, and a default taxonomy ships and loads once"),
    Requirement("SK-002", "The catalog lives in schema `mcp`, made by migrations that can be undone"),
    Requirement(
        "SK-003", "An index records its model, and another model is refused with the command that fixes it"
    ),
    Requirement("SK-004", "A language model classifies items into skills; item text is data"),
    Requirement("SK-005", "Without a language model a deterministic classifier answers, and says so"),
    Requirement("SK-006", "Suggested skills wait for a person's review"),
    Requirement("SK-007", "A skill's vector follows its items at the cost of what changed"),
    Requirement("SK-008", "A classifier never overwrites a person's assignment"),
    Requirement(
        "SK-009",
        "Unchanged items cost nothing, removed ones leave the index, and no change is lost whoever dies when",
    ),
    Requirement("SK-010", "Items come from MCP servers, from files and over HTTP"),
    # Documents
    Requirement("DOC-001", "POST /search finds a tenant's documents"),
    Requirement("DOC-002", "Filters of must, should and must_not over ten operators"),
    Requirement(
        "DOC-003", "Technology stands behind ports, and deterministic doubles of them ship with the package"
    ),
    Requirement("DOC-004", "Every read and write is scoped to the tenant of a verified token"),
    Requirement("DOC-005", "Health, request ids, timings, spans and structured logs"),
    Requirement("DOC-006", "A tenant can put and delete documents in bulk"),
    Requirement("DOC-007", "Reranking, cursors, streaming, telemetry, plans and a query log"),
    # Knowledge
    Requirement("KN-001", "Chunks and extractions are searched at once and merged"),
    Requirement(
        "KN-002",
        "Knowledge search is public, rate limited and fast",
        missing="one at a time it takes 37 ms (p95, 1,000,000 chunks), but on two cores at most 90 a second are "
        "answered: docs/scale.md",
    ),
    Requirement("KN-003", "HTTP and MCP share one knowledge search"),
    Requirement("KN-004", "The serving process can only read the library"),
    Requirement("KN-005", "Ingest can be stopped, resumed and repeated"),
    Requirement("KN-006", "MiniLM by default, and filters by type and topics"),
    # Gateway
    Requirement("TS-001", "A configuration file names MCP servers, with variables filled in"),
    Requirement("TS-002", "`toolscript search` on the command line"),
    Requirement("TS-003", "Both arms score every tool, and a near-exact name always surfaces"),
    Requirement("TS-004", "General tools are known to do what they imply"),
    Requirement(
        "TS-005",
        "Models by name or folder, on CPU or GPU",
        missing="a download was never seen here: no model hub can be reached; nor was a GPU",
    ),
    Requirement("TS-006", "Without a model, words alone answer and say so"),
    Requirement("TS-007", "A cache on disk keeps vectors of unchanged tools"),
    Requirement("TS-008", "The gateway answers searches and tells its health over HTTP"),
    Requirement("TS-009", "Tools as a TypeScript module that always compiles"),
    Requirement("TS-010", "The gateway calls tools and keeps what they answer"),
    Requirement("TS-011", "A slow or broken server never blocks the others"),
)
