"""`oauth` of a server's entry: how to sign in to it."""

from pathlib import Path

import pytest

from tests.unit.gateway.config.builders import errors, only, read, warnings
from toolscript.core.mcp_client.model import OAuthClient, masked

pytestmark = pytest.mark.requirement("TS-001")

URL = "https://mcp.example/mcp"


def test_an_entry_names_its_client_with_variables_filled_in(tmp_path: Path) -> None:
    oauth = {"clientId": "me", "clientSecret": "${S}", "scopes": ["read", "${MORE}"], "callbackPort": 7777}
    spec = only(read(tmp_path, {"web": {"url": URL, "oauth": oauth}}, {"S": "very-secret", "MORE": "write"}))
    assert spec.oauth == OAuthClient("me", "very-secret", ("read", "write"), callback_port=7777)
    assert "very-secret" not in repr(spec)
    assert masked("it said very-secret", spec) == "it said ***"


def test_scopes_may_be_one_text_and_the_client_an_address(tmp_path: Path) -> None:
    url, issuer = "https://me.example/client.json", "https://auth.example"
    oauth = {"scopes": "read write", "clientMetadataUrl": url, "issuer": issuer}
    spec = only(read(tmp_path, {"web": {"url": URL, "oauth": oauth}}))
    assert spec.oauth == OAuthClient(scopes=("read", "write"), metadata_url=url, issuer=issuer)
    assert only(read(tmp_path, {"web": {"url": URL}})).oauth == OAuthClient()


@pytest.mark.parametrize(
    ("oauth", "says"),
    [
        (True, "oauth is not an object"),
        ({"clientSecret": "s"}, "oauth has a clientSecret without a clientId"),
        ({"clientMetadataUrl": "http://me.example/client.json"}, "oauth.clientMetadataUrl is not an address"),
        ({"clientMetadataUrl": "https://me.example/"}, "oauth.clientMetadataUrl is not an address"),
        ({"issuer": "auth.example"}, "oauth.issuer is not an address"),
        ({"scopes": [1]}, "oauth.scopes is not a list of texts"),
        ({"callbackPort": "x"}, "oauth.callbackPort is not a port"),
        ({"callbackPort": 65536}, "oauth.callbackPort is not a port"),
        ({"clientId": "${UNSET}"}, "oauth.clientId needs the variable UNSET"),
        ({"clientId": ["x"]}, "oauth.clientId is not text"),
    ],
)
def test_what_cannot_be_used_is_an_error(tmp_path: Path, oauth: object, says: str) -> None:
    (error,) = errors(read(tmp_path, {"web": {"url": URL, "oauth": oauth}}))
    assert says in str(error)


def test_an_unknown_key_and_one_without_effect_are_warnings(tmp_path: Path) -> None:
    (unknown,) = warnings(read(tmp_path, {"web": {"url": URL, "oauth": {"clientid": "x"}}}))
    assert "oauth.clientid is not understood" in str(unknown)
    (idle,) = warnings(read(tmp_path, {"local": {"command": "x", "oauth": {"clientId": "x"}}}))
    assert "oauth has no effect" in str(idle)


@pytest.mark.parametrize(
    ("entry", "may"),
    [
        ({"url": URL}, True),
        ({"url": URL, "headers": {"X-Key": "k"}}, True),
        ({"url": URL, "headers": {"AUTHORIZATION": "Bearer k"}}, False),
        ({"url": "https://ann:word@mcp.example/mcp"}, False),
        ({"url": "https://mcp.example/@team"}, True),
        ({"command": "x"}, False),
    ],
)
def test_a_server_gets_a_token_if_its_entry_has_no_credentials(
    tmp_path: Path, entry: dict[str, object], may: bool
) -> None:
    assert only(read(tmp_path, {"web": entry})).may_sign_in is may
