"""Settings of the service, from environment variables and `.env`."""

import errno
import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass, field
from ipaddress import ip_network
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, SecretStr, model_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from toolscript.core.own_files import is_own, open_regular
from toolscript.core.retrieval.query import SearchType

KEYS_WITHOUT_ISSUER = "TOOLSCRIPT_JWT_KEYS needs TOOLSCRIPT_JWT_ISSUER"


def _networks(text: str) -> str:
    """Validate the networks: the server would take anything else for a host name that never matches."""
    for network in listed(text):
        ip_network(network)
    return text


def listed(text: str) -> list[str]:
    return [entry.strip() for entry in text.split(",") if entry.strip()]


class AccessSettings(BaseSettings):
    socket: str = Field(
        default="",
        description="Path of a Unix socket `serve` also listens on. Every client that can open it is an "
        "administrator, so no proxy may use it; empty: none.",
    )
    socket_mode: str = Field(
        default="600", pattern=r"^[0-7]{3}$", description="Permissions of that socket, as a file mode."
    )
    trusted_proxies: Annotated[str, AfterValidator(_networks)] = Field(
        default="",
        description="Addresses or networks of proxies, separated by commas, whose X-Forwarded-For and "
        "X-Forwarded-Proto are trusted; empty: none.",
    )
    allowed_hosts: str = Field(
        default="",
        description="Host names the service accepts, separated by commas, besides those of this machine, of "
        "TOOLSCRIPT_PUBLIC_URL and of the address it listens on; empty: only these if it listens on this machine "
        "alone, else any name.",
    )
    docs: bool = Field(default=True, description="Whether `/docs` and `/openapi.json` describe the API.")


class DocumentSettings(BaseSettings):
    environment: Literal["production", "development"] = Field(
        default="production",
        description="In production no debugging feature is allowed. In development without an admin token, every "
        "client on this machine is an administrator.",
    )
    jwt_keys: str = Field(
        default="",
        description="Address or file of the JSON Web Key Set that tenants' tokens are signed with; "
        "empty: no token is valid, so no client can access documents.",
    )
    jwt_issuer: str = Field(default="", description="Required issuer of a token; needed with the keys.")
    jwt_audience: str = Field(default="toolscript", description="Required audience of a token.")
    jwt_tenant_claim: str = Field(default="tenant_id", description="Claim of a token that names the tenant.")
    jwt_plan_claim: str = Field(default="plan", description="Claim of a token that names the plan.")
    jwt_namespaces_claim: str = Field(
        default="namespaces",
        description="Claim of a token that names the namespaces of the catalog that it sees: a list, or names "
        "separated by spaces. A token without the claim sees `default`.",
    )
    debug_bypass_auth: bool = Field(
        default=False,
        description="Whether `X-Debug-Bypass-Auth: 1` replaces a token; refused in production.",
    )
    plans: str = Field(
        default="",
        description="File with the plans of tenants, in JSON; empty: one plan, `default`, with 6,000 requests "
        "a minute and 12 at once.",
    )
    default_plan: str = Field(
        default="default", description="Plan of tenants whose token names none or an unknown one."
    )
    cursor_secret: SecretStr = Field(
        default=SecretStr(""),
        description="Secret that signs cursors, the same for all instances of the service; "
        "empty: a new one at every start.",
    )
    qdrant_documents_alias: str = Field(
        default="documents", pattern=r"^[a-z][a-z0-9_]{0,99}$", description="Name of the index of documents."
    )
    documents_model: str = Field(
        default="",
        description="Path of the model of the live document index, if it is not the configured one and was moved.",
    )
    document_shards: int = Field(
        default=0,
        ge=0,
        le=1024,
        description="Shards for the tenants of a Qdrant cluster. Each tenant is in one of them and can be moved "
        "to its own; 0: no cluster.",
    )
    document_fields: str = Field(
        default="",
        description="Metadata fields that get a payload index, with their types: "
        "`lang:keyword,year:number,public:bool`. Filters on other fields work, too.",
    )
    rerank_model: str = Field(
        default="", description="Name or folder of a cross-encoder for `rerank: cross_encoder`; empty: none."
    )
    otlp_endpoint: str = Field(default="", description="Address for traces, in OTLP over HTTP; empty: no tracing.")
    trace_share: float = Field(default=1.0, ge=0, le=1, description="Share of requests to trace.")
    metrics: bool = Field(default=False, description="Whether `GET /metrics` serves metrics for Prometheus.")
    worker_metrics_port: int = Field(
        default=0,
        ge=0,
        le=65535,
        description="Port on which `worker` serves `GET /metrics`; 0: none.",
    )
    worker_metrics_host: str = Field(
        default="127.0.0.1",
        description="Address of that port; clients on other machines need TOOLSCRIPT_ADMIN_TOKEN.",
    )
    propose_hours: float = Field(
        default=0,
        ge=0,
        le=8760,
        description="Hours between two runs of `skills propose` and `skills describe` by each worker; 0: never.",
    )
    query_log: str = Field(
        default="",
        description="Destination of the log of document searches: `postgres`, or the path of a file; empty: none.",
    )
    query_log_keeps: Literal["figures", "text", "results"] = Field(
        default="figures",
        description="Content of the query log: `figures` (metrics only), `text` (also the query), or `results` "
        "(also the ids of the hits).",
    )

    query_log_days: int = Field(
        default=30, ge=1, le=36_500, description="How many days PostgreSQL keeps the query log."
    )

    @model_validator(mode="after")
    def _check_production(self) -> "DocumentSettings":
        if self.debug_bypass_auth and self.environment == "production":
            raise ValueError("TOOLSCRIPT_DEBUG_BYPASS_AUTH is for TOOLSCRIPT_ENVIRONMENT=development alone")
        if self.jwt_keys and not self.jwt_issuer:
            raise ValueError(KEYS_WITHOUT_ISSUER)
        return self


class KnowledgeSettings(BaseSettings):
    mongo_url: SecretStr = Field(
        default=SecretStr(""),
        description="Address of the MongoDB with the library that `serve` reads, preferably with a read-only "
        "user; empty: no library. Also `MONGODB_URI`.",
    )
    mongo_writer_url: SecretStr = Field(
        default=SecretStr(""),
        description="The same with a user that can write, for `ingest`; empty: TOOLSCRIPT_MONGO_URL.",
    )
    mongo_database: str = Field(
        default="knowledge", pattern=r"^[a-z][a-z0-9_]{0,59}$", description="Name of the library's database."
    )
    qdrant_chunks_alias: str = Field(
        default="chunks", pattern=r"^[a-z][a-z0-9_]{0,99}$", description="Name of the live index of chunks."
    )
    qdrant_extractions_alias: str = Field(
        default="extractions",
        pattern=r"^[a-z][a-z0-9_]{0,99}$",
        description="Name of the live index of extractions.",
    )
    public_scopes: str | None = Field(
        default=None,
        description="Scopes of clients without a token, separated by spaces; empty: none, so that nothing can be "
        "read without one. Default: `knowledge:read`, in development also `tools:read`.",
    )
    public_requests_per_minute: int = Field(
        default=120,
        ge=0,
        description="Requests per minute without a token from one address, of any kind: searches, lists, reads "
        "and MCP; 0: no limit.",
    )
    public_url: str = Field(
        default="",
        description="Public address of the service, such as https://search.example.com; "
        "empty: the address of the request.",
    )


class ServingSettings(BaseSettings):
    max_concurrent_searches: int = Field(
        default=24,
        ge=1,
        le=10_000,
        description="Searches and other reads that one process handles at once; more wait in a queue.",
    )
    drain_seconds: float = Field(
        default=0.0,
        ge=0,
        le=600,
        description="How long `serve` still answers after SIGTERM or SIGHUP, with `/readyz` 503, so that a "
        "load balancer notices.",
    )
    shutdown_seconds: int = Field(
        default=20,
        ge=1,
        le=600,
        description="How long running requests may take once `serve` has stopped listening; "
        "then they are cut off.",
    )


def share_metrics_in(folder: str) -> None:
    """Set the folder before prometheus_client is imported: it reads the variable only then."""
    os.environ["PROMETHEUS_MULTIPROC_DIR"] = folder


FILE = ".env"
MAX_BYTES = 65_536

FIELDS = {
    "MONGODB_URI": "mongo_url",
    "QDRANT_URL": "qdrant_url",
    "EMBEDDING_MODEL": "embedding_model",
}
# A credential in the environment belongs to an address in the environment, not to one of a file.
CREDENTIALS = {
    "MONGODB_URI": ("TOOLSCRIPT_MONGO_WRITER_URL",),
    "QDRANT_URL": (
        "TOOLSCRIPT_QDRANT_API_KEY",
        "TOOLSCRIPT_QDRANT_CLIENT_CERTIFICATE",
        "TOOLSCRIPT_QDRANT_CLIENT_KEY",
    ),
}


@dataclass
class AlternativeNames:
    """Settings by alternative names: `values` by field; `told` describes which names were used or skipped."""

    values: dict[str, Any] = field(default_factory=dict)
    by_place: dict[str, list[str]] = field(default_factory=dict)
    left: list[str] = field(default_factory=list)

    @property
    def told(self) -> str:
        return "; ".join(
            [*(f"{', '.join(names)} from {place}" for place, names in self.by_place.items()), *self.left]
        )

    def take(self, name: str, value: str, place: str) -> None:
        self.values[FIELDS[name]] = value
        self.by_place.setdefault(place, []).append(name)


def read_alternative_names(folder: Path | None = None) -> AlternativeNames:
    """Read settings by alternative names. `folder` is that of `.env`; None: no file."""
    environment = {name.upper(): value for name, value in os.environ.items()}
    unset = [name for name, setting in FIELDS.items() if f"TOOLSCRIPT_{setting.upper()}" not in environment]
    names = AlternativeNames()
    for name in unset:
        value = environment.get(name, "").strip()
        if value:
            names.take(name, value, "the environment")
    if folder is not None:
        missing = [name for name in unset if not environment.get(name, "").strip()]
        _take_from_file(names, folder / FILE, missing, environment)
    return names


def _take_from_file(
    names: AlternativeNames, file: Path, missing: list[str], environment: Mapping[str, str]
) -> None:
    try:
        text = _own_text(file)
    except FileNotFoundError:
        return
    except (OSError, ValueError) as error:
        names.left.append(f"{FILE} is not used: {_reason(error)}")
        return
    values = _values(text)
    for name in FIELDS:
        if name not in missing or not values.get(name):
            continue
        if held := [credential for credential in CREDENTIALS.get(name, ()) if environment.get(credential)]:
            names.left.append(
                f"{name} of {FILE} is not used: {held[0]} is set, and is never sent to an address from a file"
            )
        else:
            names.take(name, values[name], FILE)


def _own_text(file: Path) -> str:
    """Read a file that only this user can write: it decides where passwords are sent."""
    if not hasattr(os, "geteuid"):
        raise ValueError("this system does not report the owner of a file")
    with os.fdopen(open_regular(file, follow_links=False), "rb") as stream:
        status = os.fstat(stream.fileno())
        if not is_own(status, or_root=False):
            raise ValueError("it belongs to another user")
        if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            raise ValueError("others can write to it")
        content = stream.read(MAX_BYTES + 1)
    if len(content) > MAX_BYTES:
        raise ValueError("it is too large")
    return content.decode("utf-8", "replace")


def _reason(error: OSError | ValueError) -> str:
    if isinstance(error, OSError):
        return "it is a symbolic link" if error.errno == errno.ELOOP else error.strerror or "it cannot be read"
    return str(error)


def _values(text: str) -> dict[str, str]:
    """Parse lines `NAME=value`, the value with or without quotes; the last one of a name counts."""
    values: dict[str, str] = {}
    for line in text.splitlines():
        name, equals, value = line.strip().removeprefix("export ").partition("=")
        if equals:
            values[name.strip().upper()] = _unquoted(value.strip())
    return values


def _unquoted(value: str) -> str:
    if value[:1] in ("'", '"'):
        return value[1:].partition(value[0])[0]
    return value.partition(" #")[0].strip()


def _header_safe(token: SecretStr) -> SecretStr:
    """Check that the token fits into a header. The message does not contain the value."""
    text = token.get_secret_value()
    if not (text.isascii() and text.isprintable()) or text != text.strip():
        raise ValueError("must be printable ASCII without spaces around it")
    return token


class Settings(DocumentSettings, KnowledgeSettings, AccessSettings, ServingSettings):
    """All settings of the service. docs/settings.md is generated from this class."""

    model_config = SettingsConfigDict(env_prefix="TOOLSCRIPT_", frozen=True, extra="ignore")

    embedding_model: str = Field(
        default="sentence-transformers/all-MiniLM-L6-v2",
        description="Name of an embedding model, or the folder of one in ONNX format. Also `EMBEDDING_MODEL`.",
    )
    embedding_url: str = Field(
        default="",
        description="Base address of an OpenAI-compatible embeddings endpoint; empty: embed in this process.",
    )
    embedding_api_key: SecretStr = Field(default=SecretStr(""), description="Key for the embeddings endpoint.")
    embedding_dimensions: int = Field(
        default=384,
        ge=1,
        le=65536,
        description="Size of the endpoint's vectors; that of a local model is known.",
    )
    embedding_revision: str = Field(
        default="", description="Revision of the weights that the endpoint serves; a new value means a new index."
    )
    tools_model: str = Field(
        default="",
        description="Path of the model of the live tool index, if it is not the configured one and was moved.",
    )
    knowledge_model: str = Field(
        default="",
        description="Path of the model of the live library index, if it is not the configured one and was moved.",
    )
    embedding_query_prefix: str = Field(
        default="", description="Prefix that the endpoint's model expects before a query."
    )
    qdrant_url: str = Field(
        default="http://127.0.0.1:6333",
        description="Address of Qdrant; for a cluster, those of several nodes, separated by commas: "
        "if one is down, the next is used. A node whose gRPC port is another is named by it, as `host:port`. "
        "Also `QDRANT_URL`.",
    )
    qdrant_grpc_port: int = Field(
        default=6334,
        ge=1,
        le=65535,
        description="Qdrant's gRPC port, which all requests use, of nodes that do not name their own.",
    )
    qdrant_api_key: SecretStr = Field(
        default=SecretStr(""), description="Key for Qdrant; it is only secret with `https://` in the address."
    )
    qdrant_ca_file: str = Field(
        default="", description="PEM file with the CA of Qdrant's certificate; empty: the public ones."
    )
    qdrant_client_certificate: str = Field(
        default="", description="PEM file with the client certificate that Qdrant requires; empty: none."
    )
    qdrant_client_key: str = Field(default="", description="PEM file with the key of that certificate.")
    qdrant_alias: str = Field(
        default="mcp_unified_search",
        pattern=r"^[a-z][a-z0-9_]{0,99}$",
        description="Name of the live index of items.",
    )
    qdrant_skills_alias: str = Field(
        default="mcp_skills",
        pattern=r"^[a-z][a-z0-9_]{0,99}$",
        description="Name of the live index of skills.",
    )
    qdrant_shards: int = Field(default=1, ge=1, le=1024, description="Shards of a new index.")
    qdrant_replicas: int = Field(default=1, ge=1, le=16, description="Copies of each shard of a new index.")
    postgres_url: SecretStr = Field(
        default=SecretStr("postgresql://toolscript@127.0.0.1:5432/toolscript"),
        description="Address of the catalog.",
    )
    postgres_connections: int = Field(
        default=10, ge=1, le=500, description="Maximum number of connections to the catalog."
    )
    host: str = Field(default="127.0.0.1", description="Address `serve` listens on.")
    port: int = Field(default=8080, ge=0, le=65535, description="Port `serve` listens on.")
    processes: int = Field(
        default=1,
        ge=1,
        le=64,
        description="Number of processes of `serve`; each loads the model and has its own caches.",
    )
    admin_token: Annotated[SecretStr, AfterValidator(_header_safe)] = Field(
        default=SecretStr(""),
        description="Bearer token for writes over HTTP and for reads by administrators; "
        "empty: both work only over TOOLSCRIPT_SOCKET, and in development from this machine.",
    )
    tool_search_log: Literal["", "figures", "text"] = Field(
        default="",
        description="Log of tool searches in PostgreSQL: `figures` (no text), or `text` (also the query, for the "
        "report of requests without a good match); empty: none.",
    )
    tool_search_log_days: int = Field(
        default=30, ge=1, le=366, description="How many days PostgreSQL keeps the log of tool searches."
    )
    hold_changes: bool = Field(default=False, description="Whether changed definitions wait for approval.")
    max_items_per_namespace: int = Field(
        default=200_000,
        ge=0,
        description="Tools, prompts and resources that a namespace may have by imports over HTTP; 0: any number.",
    )
    sync_config: str = Field(
        default="",
        description="Config file with the MCP servers that `POST /api/v1/jobs` may query; empty: none.",
    )
    search_type: SearchType = Field(
        default=SearchType.HYBRID,
        description="Default `search_type` of a search for tools, documents or knowledge; `semantic`: "
        "literal mode, see docs/contract.md.",
    )
    serve_worker: bool = Field(
        default=True,
        description="Whether `serve` builds the index of tools and keeps it up to date itself; `false`: "
        "`toolscript worker` alone does.",
    )
    skill_copy: bool = Field(
        default=True,
        description="Whether each process of `serve` matches skills by vector in an in-memory copy of their "
        "index, up to 1,000 skills; changes by another process are then visible after about half a second.",
    )
    deadline_seconds: float = Field(default=10.0, gt=0, le=300, description="Time limit of a whole search.")
    text_url: str = Field(
        default="",
        description="Base address of an OpenAI-compatible chat endpoint to classify items; empty: use rules.",
    )
    text_model: str = Field(default="", description="Name of the language model at that endpoint.")
    text_api_key: SecretStr = Field(default=SecretStr(""), description="Key for that endpoint.")
    text_timeout_seconds: float = Field(
        default=60.0, gt=0, le=600, description="How long one response of the language model may take."
    )
    classify_concurrency: int = Field(
        default=4, ge=1, le=64, description="Concurrent requests of a worker to the language model."
    )
    classify_token_budget: int | None = Field(
        default=None, ge=1, description="Tokens a worker process may spend; then the rules classify."
    )
    classify_price_in: float = Field(
        default=0.0, ge=0, description="Price of a million prompt tokens, for the cost that a worker reports."
    )
    classify_price_out: float = Field(default=0.0, ge=0, description="Price of a million completion tokens.")
    log_level: Literal["debug", "info", "warning", "error"] = Field(
        default="info", description="Minimum level of log messages."
    )
    log_queries: bool = Field(
        default=False,
        description="Whether the log contains the queries to the library; otherwise only that there was one.",
    )
    log_format: Literal["json", "text"] = Field(default="json", description="Log format of `serve` and `worker`.")
