"""Every requirement with its id and title, and what of it is not built yet.

tests/repo/test_requirements.py ties this to the tests both ways: a requirement is named by a test with
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
        "API-004",
        "Above capacity a request is refused with 503 and Retry-After, and never answered with an empty 200",
    ),
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
    Requirement(
        "SK-011",
        "Skills are proposed from the catalog that exists, with evidence, also without a language model",
    ),
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
    Requirement("TS-006", "Without a model, the built-in one or words alone answer and say so"),
    Requirement("TS-007", "A cache on disk keeps vectors of unchanged tools"),
    Requirement("TS-008", "The gateway answers searches and tells its health over HTTP"),
    Requirement("TS-009", "Tools as a TypeScript module that always compiles"),
    Requirement("TS-010", "The gateway calls tools and keeps what they answer"),
    Requirement("TS-011", "A slow or broken server never blocks the others"),
    # Trust and permissions
    Requirement(
        "TR-001",
        "Nothing of a project's config starts or is expanded before the project is trusted",
    ),
    Requirement(
        "TR-002",
        "New and changed tools of a server are held until approved",
    ),
    Requirement(
        "TR-003",
        "Calls are allowed, asked or denied by rules on risk, tool and client",
    ),
    Requirement(
        "TR-004",
        "Loopback is no identity: every write and every private read needs a credential",
    ),
    # The gateway beyond its source document
    Requirement(
        "GW-001",
        "One daemon for all clients and commands; servers sleep until called",
    ),
    Requirement(
        "GW-002",
        "OAuth to upstream servers; secrets in the system keyring",
    ),
    Requirement(
        "GW-003",
        "Prompts, resources, elicitation, sampling, progress and cancellation pass through the joint endpoint",
    ),
    Requirement(
        "GW-004",
        "Large results are kept and paged",
    ),
    Requirement(
        "GW-005",
        "Activity and savings are recorded locally, redacted, deletable",
    ),
    Requirement(
        "GW-006",
        "Direct mode, profiles, pins, overrides; exempt from the clients' own deferral",
        missing="a direct mode is there, and profiles, pins and overrides are not",
    ),
    Requirement(
        "GW-007",
        "Import, connect, move and undo for seventeen clients",
        missing="it is for five clients, and servers are copied, not moved",
    ),
    # One search over everything
    Requirement(
        "FI-001",
        "One request over tools, documents and knowledge, each kind with its own ranking and permissions",
        deferred="each kind has a search of its own",
    ),
    Requirement(
        "FI-002",
        "The gateway searches a mounted service, and a tool found there can be added and called",
        deferred="gateway and service do not know each other",
    ),
    # Scripts
    Requirement(
        "SC-001", "Scripts run in a sandbox without permissions and call tools", deferred="no scripts are run"
    ),
    Requirement("SC-002", "Stored scripts are found and called like tools", deferred="no scripts are stored"),
    # The verdict, and learning
    Requirement(
        "VE-001", "The verdict says whether anything fits, per model, calibrated with requests nothing fits"
    ),
    Requirement(
        "VE-002",
        "Requests for several steps are answered step by step",
        deferred="sub-queries are fused into one list",
    ),
    Requirement(
        "LE-001",
        "Successful calls improve later searches, bounded, explained, private, reversible",
        deferred="nothing is learned from use",
    ),
    Requirement(
        "LE-002",
        "Feedback in the service stays within its organisation",
        deferred="the service takes no feedback",
    ),
    Requirement("LE-003", "Pins, synonyms and exclusions by hand", deferred="the ranking takes no rules by hand"),
    # The source documents to the letter
    Requirement(
        "CT-001",
        "Literal mode follows each source document exactly",
        deferred="`semantic` chooses the retriever and keeps the measured ranking around it",
    ),
    Requirement(
        "CT-002",
        "The docs list every rule of the source documents, with its test and every decision that differs",
        deferred="this manifest has the ids and titles alone",
    ),
    # Console
    Requirement("CO-001", "A console for gateway and service over the public API", deferred="there is none"),
    Requirement(
        "CO-002",
        "Sign-in, roles and a content security policy without `unsafe-*`",
        deferred="there is no console to sign in to",
    ),
    # API and clients
    Requirement(
        "AP-001",
        "One versioned API with one paging, one answer shape, one word per thing",
        missing="tool search cannot be filtered by source",
    ),
    Requirement("AP-002", "Python API and clients, sync and async"),
    Requirement("AP-003", "TypeScript client"),
    Requirement("AP-004", "Adapters for agent frameworks", deferred="there are none"),
    Requirement("AP-005", "Namespaces in the catalog"),
    # Identity
    Requirement(
        "ID-001",
        "People sign in by OIDC, machines by named, expiring, revocable tokens",
        deferred="there is one admin token, and tenants' tokens come from elsewhere",
    ),
    Requirement(
        "ID-002",
        "A role per route, by namespace and tenant, declared once",
        deferred="there are scopes of tenants and one administrator",
    ),
    Requirement(
        "ID-003",
        "Every write and refusal is audited with who did it",
        deferred="the audit of skills records what the caller says of itself",
    ),
    Requirement(
        "ID-004",
        "Each process has a database role of its own and TLS to every engine",
        deferred="TLS to every engine works; only MongoDB has roles for reading and writing",
    ),
    # Operations
    Requirement("OP-001", "Images and chart that were run", deferred="there is a compose file for the engines"),
    Requirement(
        "OP-002",
        "Upgrade and rollback without a failed request",
        deferred="versions can run side by side on one schema; no upgrade under load was tried",
    ),
    Requirement("OP-003", "Backup and restore of everything, and of one tenant"),
    Requirement(
        "OP-004",
        "Loss of any engine is recovered by the runbook",
        missing="the runbook has lost indexes, documents and the library, and not the loss of PostgreSQL",
    ),
    Requirement(
        "OP-005",
        "Metrics, traces and tested alerts for every product",
        deferred="metrics, spans and tested alerts are there; dashboard and SLOs know documents alone",
    ),
    Requirement("OP-006", "Load above capacity is shed, goodput stays"),
    # Release
    Requirement(
        "RE-001", "Reproducible release with SBOM; workflows pinned and linted", deferred="nothing was released"
    ),
    Requirement("RE-002", "A docs site whose commands were run", deferred="the docs are pages of the repository"),
    Requirement("RE-003", "A threat model with a test per row", deferred="there is no page of it"),
)
