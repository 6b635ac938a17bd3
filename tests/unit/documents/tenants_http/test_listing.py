"""`toolscript tenants list`, `keys` and `token`."""

import asyncio
from pathlib import Path

import pytest

from tests.unit.documents.tenants_http.filled import Tenants, documents
from toolscript.core.auth.keys import KeyRing, key_source
from toolscript.core.auth.model import Plan, Principal
from toolscript.core.auth.tokens import JwtVerifier
from toolscript.core.errors import Unauthorized
from toolscript.server.tenancy import token_rules

pytestmark = pytest.mark.requirement("DOC-004")


def test_tenants_are_listed_with_their_counts_page_by_page(tenants: Tenants) -> None:
    for name, count in (("ann", 4), ("bob", 1), ("Zoe", 2)):
        tenants.put(name, documents(count))
    listed = tenants.json("list")
    assert [(row["name"], row["document_count"], row["has_own_shard"]) for row in listed["results"]] == [
        ("Zoe", 2, False),
        ("ann", 4, False),
        ("bob", 1, False),
    ]
    assert listed["next_cursor"] is None
    # Two of Ann's documents have several chunks.
    assert listed["results"][1]["chunk_count"] > 4
    first = tenants.json("list", "--limit", "2")
    assert [row["name"] for row in first["results"]] == ["Zoe", "ann"]
    rest = tenants.json("list", "--after", first["next_cursor"])["results"]
    assert [row["name"] for row in rest] == ["bob"]


def test_the_text_output_of_list_is_a_table_with_a_hint_for_the_next_page(tenants: Tenants) -> None:
    tenants.put("ann", documents(1))
    tenants.put("bob", documents(1))
    stdout, stderr = tenants("list", "--limit", "1")
    assert stdout.split()[:6] == ["Tenant", "Documents", "Chunks", "Shard", "Since", "ann"]
    assert "--after ann" in stderr
    assert "no tenants after it" in tenants("list", "--after", "zzz")[0]


def test_before_the_first_document_there_is_nothing_to_list(tenants: Tenants) -> None:
    _, stderr = tenants("list", code=2)
    assert "no document was ever put" in stderr
    assert "toolscript documents put" in stderr


def test_a_token_signed_with_an_own_key_is_valid_for_its_tenant_only(tenants: Tenants, tmp_path: Path) -> None:
    keys_made = tenants.json("keys", str(tmp_path))
    settings = tenants.installation.settings.model_copy(
        update={"jwt_keys": keys_made["jwt_keys"], "jwt_issuer": "https://issuer.example"}
    )
    signed = tenants.json(
        *("token", "ann", "--key", keys_made["signing_key"], "--issuer", "https://issuer.example"),
        *("--plan", "free", "--subject", "somebody", "--hours", "2"),
    )["token"]

    async def verified(token: str) -> Principal:
        keys = KeyRing(key_source(settings.jwt_keys))
        plans = {"free": Plan("free", max_top_k=3)}
        try:
            return await JwtVerifier(keys, token_rules(settings), plans, Plan("default")).verify(token)
        finally:
            await keys.close()

    principal = asyncio.run(verified(signed))
    assert (principal.tenant.name, principal.plan.name, principal.subject) == ("ann", "free", "somebody")
    with pytest.raises(Unauthorized):
        asyncio.run(verified(signed[:-4] + "AAAA"))
    _, stderr = tenants("keys", str(tmp_path), code=2)
    assert "exists already" in stderr
    _, stderr = tenants("token", "ann", "--key", str(tmp_path / "none.json"), "--issuer", "x", code=2)
    assert "toolscript tenants keys" in stderr
