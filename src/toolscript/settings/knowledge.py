"""What an installation of the service decides about its library, and about whoever asks without a token."""

from pydantic import Field, SecretStr
from pydantic_settings import BaseSettings


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
