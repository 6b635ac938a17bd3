"""Tools that need input from the client before they can finish: their requests, in order."""

import hashlib
import hmac
import secrets
from typing import Any

from mcp.shared.exceptions import MCPError
from mcp_types import INVALID_PARAMS

KEY = secrets.token_bytes(32)

Result = dict[str, Any]


def form(message: str, name: str, kind: str = "string") -> Result:
    schema = {"type": "object", "properties": {name: {"type": kind}}, "required": [name]}
    return {"method": "elicitation/create", "params": {"message": message, "requestedSchema": schema}}


def sampling(question: str) -> Result:
    message = {"role": "user", "content": {"type": "text", "text": question}}
    return {"method": "sampling/createMessage", "params": {"messages": [message], "maxTokens": 100}}


ROOTS: Result = {"method": "roots/list", "params": {}}
NAME = form("What is your name?", "name")

# First request of each tool; those of the second table also send a state that the client must return.
ASKED: dict[str, Result] = {
    "test_input_required_result_elicitation": {"user_name": NAME},
    "test_input_required_result_sampling": {"capital_question": sampling("What is the capital of France?")},
    "test_input_required_result_list_roots": {"client_roots": ROOTS},
    "test_input_required_result_prompt": {"user_context": form("What context should the prompt use?", "context")},
}
ASKED_WITH_STATE: dict[str, Result] = {
    "test_input_required_result_request_state": {"confirm": form("Please confirm", "ok", "boolean")},
    "test_input_required_result_tampered_state": {"confirm": form("Please confirm", "ok", "boolean")},
    "test_input_required_result_multiple_inputs": {
        "user_name": NAME,
        "greeting": sampling("Generate a greeting"),
        "client_roots": ROOTS,
    },
}
ROUNDS: tuple[Result, ...] = (
    {"step1": form("Step 1: What is your name?", "name")},
    {"step2": form("Step 2: What is your favorite color?", "color")},
)


# Tools that ask clients of older versions by a request of their own (`handshake_era`), and what they say then.
ASKING_IN_ROUNDS = {"test_sampling": "LLM response", "test_elicitation": "User response"}


def ask_or_say(name: str, arguments: Result, answers: dict[str, Any] | None) -> Result:
    if answers and "answer" in answers:
        said = f"{ASKING_IN_ROUNDS[name]}: {answers['answer']}"
        return {"content": [{"type": "text", "text": said}], "isError": False, "resultType": "complete"}
    is_sampling = name == "test_sampling"
    question = sampling(str(arguments["prompt"])) if is_sampling else form(str(arguments["message"]), "response")
    return ask({"answer": question})


def ask(requests: Result, state: str | None = None) -> Result:
    result = {"resultType": "input_required", "inputRequests": requests}
    return result if state is None else {**result, "requestState": _sealed(state)}


def next_question(name: str, answers: dict[str, Any] | None, state: str | None) -> Result | None:
    """Return the next request to the client; None if all are answered."""
    if name in ASKED:
        return ask(ASKED[name]) if _missing(ASKED[name], answers) else None
    existing = None if state is None else _opened(state)
    if name in ASKED_WITH_STATE:
        requests = ASKED_WITH_STATE[name]
        return ask(requests, name) if existing != name or _missing(requests, answers) else None
    return _next_round(existing, answers)


def _next_round(known: str | None, answers: dict[str, Any] | None) -> Result | None:
    """The state is the number of the last round."""
    requests = int(known) if known is not None and known.isdigit() else None
    if requests is None or _missing(ROUNDS[requests], answers):
        return ask(ROUNDS[requests or 0], str(requests or 0))
    return ask(ROUNDS[requests + 1], str(requests + 1)) if requests + 1 < len(ROUNDS) else None


def _missing(requests: Result, answers: dict[str, Any] | None) -> bool:
    return not requests.keys() <= (answers or {}).keys()


def _sealed(state: str) -> str:
    return f"{state}.{hmac.new(KEY, state.encode(), hashlib.sha256).hexdigest()}"


def _opened(sealed: str) -> str:
    state = sealed.rpartition(".")[0]
    if not hmac.compare_digest(_sealed(state), sealed):
        raise MCPError(INVALID_PARAMS, "the request state was changed on its way")
    return state
