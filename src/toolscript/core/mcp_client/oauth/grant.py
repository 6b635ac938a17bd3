"""What a sign-in results in: tokens of one server, and our client at its authorization server."""

import json
import time
from dataclasses import asdict, dataclass, field, replace

# A token is renewed this long before it expires, or after four fifths of its life if that is short.
EARLY_SECONDS = 60.0
_EARLY_SHARE = 0.2


@dataclass(frozen=True)
class Registration:
    """Our client at one authorization server, as it was registered: for this address, and for these scopes."""

    client_id: str
    client_secret: str = field(default="", repr=False)
    auth_method: str = "none"
    redirect_uri: str = ""
    scope: str = ""

    def covers(self, redirect_uri: str, scope: str) -> bool:
        """Return whether it can be used again. Without scopes it may ask for any."""
        scopes = set(self.scope.split())
        return self.redirect_uri == redirect_uri and (not scopes or scopes.issuperset(scope.split()))


@dataclass(frozen=True)
class Grant:
    """Tokens, with what is needed to renew and to revoke them. Without an access token only the client is known.

    `server_url` is the server that they are for: no other gets them. `sign_in` stays the same while tokens are
    renewed. Times are seconds since the epoch; without
    `expires_at` the server did not say how long the access token is valid.
    """

    server_url: str
    resource: str
    issuer: str
    token_endpoint: str
    revocation_endpoint: str
    client: Registration
    access_token: str = field(default="", repr=False)
    refresh_token: str = field(default="", repr=False)
    expires_at: float | None = None
    seconds: float = 0.0
    scope: str = ""
    sign_in: str = ""

    def is_due(self) -> bool:
        """Return whether the access token expires soon, or has expired."""
        early = min(EARLY_SECONDS, self.seconds * _EARLY_SHARE)
        return self.expires_at is not None and time.time() > self.expires_at - early

    def has_expired(self) -> bool:
        return self.expires_at is not None and time.time() > self.expires_at

    def without_tokens(self, *, knows_client: bool = True) -> "Grant":
        client = self.client if knows_client else Registration("")
        return replace(self, client=client, access_token="", refresh_token="", expires_at=None, scope="")

    def to_json(self) -> str:
        return json.dumps(asdict(self))


def grant_from_json(text: str) -> Grant | None:
    """Return what `to_json` wrote; None for what another version wrote, as if there had been no sign-in."""
    try:
        data = json.loads(text)
        return Grant(**{**data, "client": Registration(**data["client"])})
    except (ValueError, TypeError, KeyError):
        return None
