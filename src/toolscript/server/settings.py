"""What an installation of the service decides."""

from dataclasses import fields
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, SecretStr, ValidationError
from pydantic_settings import SettingsConfigDict

from toolscript.errors import SetupError
from toolscript.model.queries import SearchType
from toolscript.settings.access import AccessSettings
from toolscript.settings.client import ClientSettings
from toolscript.settings.documents import DocumentSettings
from toolscript.settings.gateway import GatewaySettings
from toolscript.settings.knowledge import KnowledgeSettings
from toolscript.settings.serving import ServingSettings
from toolscript.settings.shared_names import SecondNames, second_names
from toolscript.settings.unknown import warn_of_unknown


def load_settings(others: SecondNames | None = None) -> "Settings":
    """The settings of the environment, or which of them cannot be used. Values stay out of the message.

    `others`: what stands under second names; unless given, what the environment has under them.
    """
    others = others or second_names()
    warn_of_unknown({*Settings.model_fields, *_names(GatewaySettings), *_names(ClientSettings)})
    try:
        return Settings(**others.values)
    except ValidationError as error:
        # What concerns several of them names them itself.
        problems = [
            "".join(f"TOOLSCRIPT_{str(name).upper()}: " for name in one["loc"][:1]) + one["msg"]
            for one in error.errors()
        ]
        raise SetupError("; ".join(problems), hint="docs/settings.md lists what each may be") from None


def _names(settings: type[GatewaySettings | ClientSettings]) -> set[str]:
    return {field.name for field in fields(settings)}


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
    embedding_cache_size: int = Field(default=4096, ge=1, description="How many queries' vectors are remembered.")
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
    classify_batch: int = Field(
        default=10, ge=1, le=20, description="Items a language model is asked about at once."
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
    worker_batch: int = Field(default=64, ge=1, le=10_000, description="Items a worker takes at once.")
    worker_lease_seconds: float = Field(
        default=2.5,
        ge=0.2,
        le=3600,
        description="How long a worker's batch stays its own after it was killed; while it lives it renews this.",
    )
    lease_seconds: float = Field(
        default=60.0,
        gt=0,
        le=3600,
        description="How long a source that `ingest` writes is that run's own after its last sign of life.",
    )
    log_level: Literal["debug", "info", "warning", "error"] = Field(default="info", description="What is logged.")
    log_queries: bool = Field(
        default=False, description="Whether the log has what the library is asked; else only that it is asked."
    )
    log_format: Literal["json", "text"] = Field(default="json", description="How `serve` and `worker` log.")
