"""What a refusal asks for: `WWW-Authenticate`, and `Retry-After`."""

from toolscript.errors import Forbidden, ToolscriptError, Unauthorized
from toolscript.model.tenancy import Caller, Scope, Visitor
from toolscript.surfaces.http.callers import SEND_HINT

INSUFFICIENT_SCOPE = "insufficient_scope"


def require_scope(asking: Caller | Visitor, scope: Scope) -> None:
    """Of somebody without a token one is wanted; with one that does not go so far, another."""
    if asking.may(scope):
        return
    if isinstance(asking, Visitor) and asking.caller is None:
        raise Unauthorized("a token is needed", hint=SEND_HINT, details={"scope": str(scope)})
    raise Forbidden(
        f"the token does not have the scope {scope}",
        hint="get one from its issuer that has",
        details={"error": INSUFFICIENT_SCOPE, "scope": str(scope)},
    )


def refusal_headers(status: int, error: ToolscriptError, **more: str) -> dict[str, str]:
    """`more` stands in the challenge, too, where there is one."""
    asked = {name: str(error.details[name]) for name in ("error", "scope") if error.details.get(name)}
    if status == 401 or asked.get("error") == INSUFFICIENT_SCOPE:
        said = ", ".join(f'{name}="{value}"' for name, value in {**more, **asked}.items())
        return {"WWW-Authenticate": f"Bearer {said}".rstrip()}
    after = error.details.get("retry_after_seconds")
    return {} if after is None else {"Retry-After": str(after)}
