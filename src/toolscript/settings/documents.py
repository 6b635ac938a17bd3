"""What an installation of the service decides about documents, their tenants, and what is seen of it all."""

from typing import Literal

from pydantic import Field, SecretStr, model_validator
from pydantic_settings import BaseSettings


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
    jwt_leeway_seconds: int = Field(
        default=30, ge=0, le=300, description="How far clocks may be apart when a token's times are checked."
    )
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
