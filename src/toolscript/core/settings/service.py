"""What an installation of the service decides."""

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


def _networks(text: str) -> str:
    """Checked here: what is no network would be taken for a name by who reads it, and never match."""
    for one in listed(text):
        ip_network(one)
    return text


def listed(text: str) -> list[str]:
    return [one.strip() for one in text.split(",") if one.strip()]


class AccessSettings(BaseSettings):
    socket: str = Field(
        default="",
        description="Path of a Unix socket `serve` listens on as well; whoever can open it is an administrator, "
        "so no proxy may lead there; empty: none.",
    )
    socket_mode: str = Field(
        default="600", pattern=r"^[0-7]{3}$", description="Who can open that socket, as the mode of its file."
    )
    trusted_proxies: Annotated[str, AfterValidator(_networks)] = Field(
        default="",
        description="Addresses or networks of proxies, with commas between, whose X-Forwarded-For and "
        "X-Forwarded-Proto are believed; empty: nobody's.",
    )
    allowed_hosts: str = Field(
        default="",
        description="Names by which the service may be asked, with commas between, beside this machine's, that of "
        "TOOLSCRIPT_PUBLIC_URL and the address it listens on; empty: those, where it listens on this machine "
        "alone, and any name elsewhere.",
    )
    docs: bool = Field(default=True, description="Whether `/docs` and `/openapi.json` describe the API.")


class DocumentSettings(BaseSettings):
    environment: Literal["production", "development"] = Field(
        default="production",
        description="In production nothing that is meant for trying things out is allowed. In development, where "
        "no admin token is set, whoever asks from this machine is an administrator.",
    )
    jwt_keys: str = Field(
        default="",
        description="Address or file of the JSON Web Key Set that tokens of tenants are signed with; "
        "empty: there is nobody who could ask for documents.",
    )
    jwt_issuer: str = Field(default="", description="Who must have issued a token; needed with the keys.")
    jwt_audience: str = Field(default="toolscript", description="For whom a token must have been issued.")
    jwt_tenant_claim: str = Field(default="tenant_id", description="Claim of a token that names the tenant.")
    jwt_plan_claim: str = Field(default="plan", description="Claim of a token that names the plan.")
    debug_bypass_auth: bool = Field(
        default=False,
        description="Whether `X-Debug-Bypass-Auth: 1` stands for a token; refused in production.",
    )
    plans: str = Field(
        default="",
        description="File with the plans of tenants, in JSON; empty: one plan, `default`, without limits.",
    )
    default_plan: str = Field(
        default="default", description="Plan of tenants whose token names none, or one that is not known."
    )
    cursor_secret: SecretStr = Field(
        default=SecretStr(""),
        description="What cursors are signed with, the same for all copies of the service; "
        "empty: a new one at every start.",
    )
    qdrant_documents_alias: str = Field(
        default="documents", pattern=r"^[a-z][a-z0-9_]{0,99}$", description="Name of the index of documents."
    )
    documents_model: str = Field(
        default="",
        description="Where the model of the live documents is, when it is not the configured one and was moved.",
    )
    document_shards: int = Field(
        default=0,
        ge=0,
        le=1024,
        description="Shards that tenants are spread over in a Qdrant cluster, each tenant in one of them, from "
        "which it can be moved to its own; 0: not a cluster.",
    )
    document_fields: str = Field(
        default="",
        description="Fields of metadata that many tenants filter by, with their kinds, for an index: "
        "`lang:keyword,year:number,public:bool`. Others can be filtered by, too.",
    )
    rerank_model: str = Field(
        default="", description="Name or folder of a cross-encoder for `rerank: cross_encoder`; empty: none."
    )
    otlp_endpoint: str = Field(
        default="", description="Address that traces are sent to, in OTLP over HTTP; empty: none are made."
    )
    trace_share: float = Field(default=1.0, ge=0, le=1, description="Share of requests that are traced.")
    metrics: bool = Field(default=False, description="Whether `GET /metrics` shows figures for Prometheus.")
    worker_metrics_port: int = Field(
        default=0,
        ge=0,
        le=65535,
        description="Port on which `worker` shows its metrics at `GET /metrics`; 0: none.",
    )
    worker_metrics_host: str = Field(
        default="127.0.0.1",
        description="Address of that port; from other machines TOOLSCRIPT_ADMIN_TOKEN is asked for.",
    )
    query_log: str = Field(
        default="",
        description="Where searches for documents are noted: `postgres`, or the path of a file; empty: nowhere.",
    )
    query_log_keeps: Literal["figures", "text", "results"] = Field(
        default="figures",
        description="What is noted of a search: figures alone, the query's text too, or the ids found as well.",
    )

    query_log_days: int = Field(
        default=30, ge=1, le=36_500, description="How long searches stay noted in PostgreSQL."
    )

    @model_validator(mode="after")
    def _nothing_for_trying_in_production(self) -> "DocumentSettings":
        if self.debug_bypass_auth and self.environment == "production":
            raise ValueError("TOOLSCRIPT_DEBUG_BYPASS_AUTH is for TOOLSCRIPT_ENVIRONMENT=development alone")
        if self.jwt_keys and not self.jwt_issuer:
            raise ValueError("TOOLSCRIPT_JWT_KEYS needs TOOLSCRIPT_JWT_ISSUER")
        return self


class KnowledgeSettings(BaseSettings):
    mongo_url: SecretStr = Field(
        default=SecretStr(""),
        description="Address of the MongoDB with the library that `serve` reads, best with a user that can only "
        "read; empty: there is none. Also `MONGODB_URI`.",
    )
    mongo_writer_url: SecretStr = Field(
        default=SecretStr(""),
        description="The same with a user that can write, for `ingest`; empty: that of TOOLSCRIPT_MONGO_URL.",
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
    public_scopes: str = Field(
        default="knowledge:read tools:read",
        description="What somebody without a token may do, over MCP and in the library, with spaces between; "
        "empty: nothing.",
    )
    public_requests_per_minute: int = Field(
        default=120,
        ge=0,
        description="How often one address may ask without a token, in a minute; 0: as often as it likes.",
    )
    public_url: str = Field(
        default="",
        description="Address of the service as its clients know it, such as https://search.example.com; "
        "empty: as they have asked for it.",
    )


class ServingSettings(BaseSettings):
    max_concurrent_searches: int = Field(
        default=24,
        ge=1,
        le=10_000,
        description="Searches and other reads that one process works on at once; more wait for their turn.",
    )
    drain_seconds: float = Field(
        default=0.0,
        ge=0,
        le=600,
        description="How long `serve` goes on answering after SIGTERM or SIGHUP, with `/readyz` 503, so that a "
        "load balancer notices.",
    )
    shutdown_seconds: int = Field(
        default=20,
        ge=1,
        le=600,
        description="How long requests under way may take once `serve` has stopped listening; "
        "then they are cut off.",
    )


def share_metrics_in(folder: str) -> None:
    """The library that counts looks here when it is first loaded: to be said before that."""
    os.environ["PROMETHEUS_MULTIPROC_DIR"] = folder


FILE = ".env"
MAX_BYTES = 65_536

FIELDS = {
    "MONGODB_URI": "mongo_url",
    "QDRANT_URL": "qdrant_url",
    "EMBEDDING_MODEL": "embedding_model",
}
# Whoever has one of these in the environment has said whom it is for.
CREDENTIALS = {
    "MONGODB_URI": ("TOOLSCRIPT_MONGO_WRITER_URL",),
    "QDRANT_URL": (
        "TOOLSCRIPT_QDRANT_API_KEY",
        "TOOLSCRIPT_QDRANT_CLIENT_CERTIFICATE",
        "TOOLSCRIPT_QDRANT_CLIENT_KEY",
    ),
}


@dataclass
class SecondNames:
    """`values` by our names of fields. `told` says which names were taken from where, and which not."""

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


def second_names(folder: Path | None = None) -> SecondNames:
    """`folder` is where `.env` is looked for; None: nowhere."""
    given = {name.upper(): value for name, value in os.environ.items()}
    open_ones = [name for name, ours in FIELDS.items() if f"TOOLSCRIPT_{ours.upper()}" not in given]
    names = SecondNames()
    for name in open_ones:
        value = given.get(name, "").strip()
        if value:
            names.take(name, value, "the environment")
    if folder is not None:
        _take_from_file(
            names, folder / FILE, [name for name in open_ones if not given.get(name, "").strip()], given
        )
    return names


def _take_from_file(names: SecondNames, file: Path, wanted: list[str], given: Mapping[str, str]) -> None:
    try:
        text = _own_text(file)
    except FileNotFoundError:
        return
    except (OSError, ValueError) as error:
        names.left.append(f"{FILE} is not used: {_reason(error)}")
        return
    values = _values(text)
    for name in FIELDS:
        if name not in wanted or not values.get(name):
            continue
        if held := [one for one in CREDENTIALS.get(name, ()) if given.get(one)]:
            names.left.append(f"{name} of {FILE} is not used: {held[0]} is set, and goes to no address of a file")
        else:
            names.take(name, values[name], FILE)


def _own_text(file: Path) -> str:
    """Strictly this user's: it lies where `serve` is started, and says where passwords are sent."""
    if not hasattr(os, "geteuid"):
        raise ValueError("here nobody can say whose it is")
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
    """Lines `NAME=value`, with or without quotes around the value; the last of a name counts."""
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
    """It has to fit into a header. The value stays out of the message."""
    text = token.get_secret_value()
    if not (text.isascii() and text.isprintable()) or text != text.strip():
        raise ValueError("must be printable ASCII without spaces around it")
    return token


class Settings(DocumentSettings, KnowledgeSettings, AccessSettings, ServingSettings):
    """What an installation decides. docs/settings.md is generated from this class."""

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
        description="Size of the vectors the endpoint gives; a local model knows its own.",
    )
    embedding_revision: str = Field(
        default="", description="Which weights the endpoint serves; a new value means a new index."
    )
    tools_model: str = Field(
        default="",
        description="Where the model of the live tools is, when it is not the configured one and was moved.",
    )
    knowledge_model: str = Field(
        default="",
        description="Where the model of the live library is, when it is not the configured one and was moved.",
    )
    embedding_query_prefix: str = Field(default="", description="What the endpoint's model wants before a query.")
    qdrant_url: str = Field(
        default="http://127.0.0.1:6333",
        description="Address of Qdrant; of a cluster, those of several nodes with commas between them: "
        "when one is down, the next is asked. Also `QDRANT_URL`.",
    )
    qdrant_grpc_port: int = Field(
        default=6334,
        ge=1,
        le=65535,
        description="Qdrant's gRPC port, the one that is used; the same on every node.",
    )
    qdrant_api_key: SecretStr = Field(
        default=SecretStr(""), description="Key for Qdrant; it is only secret with `https://` in the address."
    )
    qdrant_ca_file: str = Field(
        default="", description="PEM file with the CA of Qdrant's certificate; empty: the public ones."
    )
    qdrant_client_certificate: str = Field(
        default="", description="PEM file with the certificate that Qdrant asks of its clients; empty: none."
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
    postgres_connections: int = Field(default=10, ge=1, le=500, description="Most connections to the catalog.")
    host: str = Field(default="127.0.0.1", description="Address `serve` listens on.")
    port: int = Field(default=8080, ge=0, le=65535, description="Port `serve` listens on.")
    processes: int = Field(
        default=1,
        ge=1,
        le=64,
        description="How many processes `serve` answers with; each loads the model and has caches of its own.",
    )
    admin_token: Annotated[SecretStr, AfterValidator(_header_safe)] = Field(
        default=SecretStr(""),
        description="What writes over HTTP, and reads that are for administrators, must carry as a bearer token; "
        "empty: nobody may do either but over TOOLSCRIPT_SOCKET, and in development from this machine.",
    )
    hold_changes: bool = Field(default=False, description="Changed definitions wait for a person's approval.")
    sync_config: str = Field(
        default="",
        description="Config file with the MCP servers that `POST /api/v1/sync` may ask; empty: none.",
    )
    search_type: SearchType = Field(
        default=SearchType.HYBRID,
        description="What a search of tools, documents or knowledge is that names no `search_type`; `semantic`: "
        "literal mode, see docs/contract.md.",
    )
    skill_copy: bool = Field(
        default=True,
        description="Whether each process of `serve` matches skills by vector in a copy of their index in memory, "
        "up to 1,000 of them; what another process changes is then seen after about half a second.",
    )
    deadline_seconds: float = Field(default=10.0, gt=0, le=300, description="Time a search may take as a whole.")
    text_url: str = Field(
        default="",
        description="Base address of an OpenAI-compatible chat endpoint that classifies items; empty: rules do.",
    )
    text_model: str = Field(default="", description="Name of the language model at that endpoint.")
    text_api_key: SecretStr = Field(default=SecretStr(""), description="Key for that endpoint.")
    text_timeout_seconds: float = Field(
        default=60.0, gt=0, le=600, description="How long one answer of the language model may take."
    )
    classify_concurrency: int = Field(
        default=4, ge=1, le=64, description="Questions a worker has open with the language model at once."
    )
    classify_token_budget: int | None = Field(
        default=None, ge=1, description="Tokens a worker may spend in its life; then the rules classify."
    )
    classify_price_in: float = Field(
        default=0.0, ge=0, description="What a million tokens of questions cost, for the cost a worker reports."
    )
    classify_price_out: float = Field(default=0.0, ge=0, description="What a million tokens of answers cost.")
    log_level: Literal["debug", "info", "warning", "error"] = Field(default="info", description="What is logged.")
    log_queries: bool = Field(
        default=False, description="Whether the log has what the library is asked; else only that it is asked."
    )
    log_format: Literal["json", "text"] = Field(default="json", description="How `serve` and `worker` log.")
