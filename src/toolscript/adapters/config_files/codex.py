"""A server in Codex's TOML, in our own format."""

from collections.abc import Mapping

_SAME = ("command", "args", "env", "cwd", "url")


def entry_from_codex(raw: Mapping[str, object]) -> dict[str, object]:
    """Codex knows no variables in texts, only names of variables: those become references."""
    entry = {key: _literal(raw[key]) for key in _SAME if key in raw}
    entry["env"] = _object(entry.get("env")) | {name: f"${{{name}}}" for name in _passed_on(raw.get("env_vars"))}
    entry["headers"] = _headers(raw)
    entry["includeTools"] = raw.get("enabled_tools")
    # An empty list allows no tool in Codex. Here it would allow all.
    entry["excludeTools"] = ["*"] if raw.get("enabled_tools") == [] else raw.get("disabled_tools")
    entry["disabled"] = raw.get("enabled") is False
    milliseconds = raw.get("startup_timeout_ms")
    seconds = milliseconds / 1000 if isinstance(milliseconds, int) else None
    entry["startupTimeout"] = raw.get("startup_timeout_sec", seconds)
    entry["callTimeout"] = raw.get("tool_timeout_sec")
    return entry


def _headers(raw: Mapping[str, object]) -> dict[str, object]:
    headers = _object(_literal(raw.get("http_headers")))
    headers |= {name: f"${{{variable}}}" for name, variable in _object(raw.get("env_http_headers")).items()}
    bearer = raw.get("bearer_token_env_var")
    return headers | ({"Authorization": f"Bearer ${{{bearer}}}"} if isinstance(bearer, str) else {})


def _passed_on(names: object) -> list[str]:
    listed = names if isinstance(names, list) else []
    given = [one.get("name") if isinstance(one, Mapping) else one for one in listed]
    return [name for name in given if isinstance(name, str)]


def _object(value: object) -> dict[str, object]:
    return dict(value) if isinstance(value, Mapping) else {}


def _literal(value: object) -> object:
    if isinstance(value, str):
        return value.replace("${", "$${")
    if isinstance(value, list):
        return [_literal(one) for one in value]
    return {key: _literal(one) for key, one in value.items()} if isinstance(value, Mapping) else value
