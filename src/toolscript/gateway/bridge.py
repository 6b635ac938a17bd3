"""`toolscript mcp`: a pipe between the stdin and stdout of an MCP client and the gateway's MCP server over HTTP.

Messages pass unchanged. What is done here is what the pipe needs. The session of an older client is begun again at
the next gateway when one has ended. A request that was not sent is sent again, and one without effect is repeated;
a call that was sent is answered with the truth: its outcome is unknown. While the gateway starts, what every
client asks first is answered as the last one did.

Only the standard library is used: a client waits a second or two, and each of its sessions has such a process.
"""

import json
import os
import threading
import time
from base64 import b64encode
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from toolscript.core.errors import ToolscriptError, Unavailable
from toolscript.gateway.bridge_http import Address, Exchange, Lost, NotSent
from toolscript.gateway.bridge_place import HINT, BridgeSettings, Finder, Place
from toolscript.gateway.first_answers import FIRST, PIPE_HEADER, FirstAnswers

Message = dict[str, Any]

SESSION_HEADER = "mcp-session-id"
INITIALIZE, CALL, LIST_TOOLS, LISTEN = "initialize", "tools/call", "tools/list", "subscriptions/listen"
# Our own tools that change nothing. With --direct, a server may have one of these names, but for the first.
READ_RESULT = "read_result"
READING = frozenset({READ_RESULT, "search_tools", "describe_tool", "get_prompt", "read_resource"})
VERSION_KEY, SUBSCRIPTION_KEY = (
    f"io.modelcontextprotocol/{name}" for name in ("protocolVersion", "subscriptionId")
)
# Methods of the version 2026-07-28 whose header repeats a parameter.
NAMED = {CALL: "name", "prompts/get": "name", "resources/read": "uri"}
CHANGES = {
    "toolsListChanged": "notifications/tools/list_changed",
    "promptsListChanged": "notifications/prompts/list_changed",
    "resourcesListChanged": "notifications/resources/list_changed",
}
ACKNOWLEDGED = "notifications/subscriptions/acknowledged"
UPDATED = "notifications/resources/updated"
UNKNOWN_OUTCOME = "the gateway ended during this call: its outcome is unknown"
# How long a gateway that runs may take before its first answers are given in its place.
PATIENCE_SECONDS = 0.3
# A gateway that ends has ended after this.
ENDING_SECONDS = 0.1
WATCH_AGAIN_SECONDS = 2.0
# How long calls may go on after the client has closed stdin.
LAST_SECONDS = 1.0
# How many gateways one request is sent to, where each ends before it answers.
MAX_GATEWAYS = 4
READ_BYTES = 64 * 1024
PARSE_ERROR, INVALID_REQUEST, INTERNAL_ERROR = -32700, -32600, -32603


class Call:
    """A request of the client. It is answered once."""

    def __init__(self, message: Message, line: bytes) -> None:
        self.message = message
        self.line = line
        self.method = str(message["method"])
        self.id = message["id"]
        params = message.get("params")
        self.params: Message = params if isinstance(params, dict) else {}
        meta = self.params.get("_meta")
        self.version = str(meta.get(VERSION_KEY, "")) if isinstance(meta, dict) else ""
        self.exchange: Exchange | None = None
        self.is_cancelled = self.is_acknowledged = self.was_heard = False
        # What was answered in the place of a gateway that was not there yet.
        self.told: Message | None = None
        self._answered = threading.Lock()

    def claim(self) -> bool:
        """Return whether the caller is the one to answer it."""
        return self._answered.acquire(blocking=False)

    def goes_by(self, exchange: Exchange) -> bool:
        """Take what a cancellation closes; return False if it came before."""
        self.exchange = exchange
        return not self.is_cancelled

    def cancel(self) -> None:
        self.is_cancelled = True
        if self.exchange is not None:
            self.exchange.close()


class Session:
    """The session of an older client at one gateway: its stream, and how many calls are open in it."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self.id = self.version = ""
        self.answer: Message = {}
        self.stream = Exchange()
        self.open: set[Exchange] = set()
        self.is_begun = self.is_left = False

    def close(self, exchange: Exchange) -> None:
        self.open.discard(exchange)
        if self.is_left:
            self.leave()

    def leave(self) -> None:
        """End it, once no call is open in it any more."""
        self.is_left = True
        if not self.open:
            self.stream.close()


class Bridge:
    def __init__(self, settings: BridgeSettings, finder: Finder, reading: int, writing: int) -> None:
        self._settings = settings
        self._finder = finder
        self._reading, self._writing = reading, writing
        self._path = "/mcp/all" if settings.direct else "/mcp"
        self._writes = threading.Lock()
        self._finding = threading.RLock()
        self._place: Place | None = None
        self._was_lost = False
        self._is_ready = False
        self._hello: Call | None = None
        self._is_initialized = self._had_session = False
        self._session: Session | None = None
        self._open: dict[str, Call] = {}
        # The questions of servers, by the ids under which the client has them: their session, id and call.
        self._asked: dict[str, tuple[Session, object, Call | None]] = {}
        self._uris: dict[str, None] = {}
        self._level: Message | None = None
        self._numbers = 0
        self._first: FirstAnswers | None = None

    def run(self) -> None:
        """Serve until the client closes stdin."""
        for line in _lines(self._reading):
            if line.strip():
                self._take(line)
        deadline = time.monotonic() + LAST_SECONDS
        while time.monotonic() < deadline and any(call.method != LISTEN for call in [*self._open.values()]):
            time.sleep(0.01)
        session, self._session = self._session, None
        if session is not None and session.id:
            session.is_left = True
            with suppress(NotSent, Lost):
                self._ask(Exchange(), "DELETE", session.place, session)
        self._finder.close()

    def _take(self, line: bytes) -> None:
        try:
            message = json.loads(line)
        except (ValueError, RecursionError):
            self._send({"jsonrpc": "2.0", "id": None, "error": {"code": PARSE_ERROR, "message": "Parse error"}})
            return
        if not isinstance(message, dict):
            error = {"code": INVALID_REQUEST, "message": "a message is a JSON object"}
            self._send({"jsonrpc": "2.0", "id": None, "error": error})
        elif "method" not in message:
            self._in_thread(self._answer_question, message)
        elif "id" in message:
            self._take_request(Call(message, line.strip()))
        else:
            self._take_notification(message)

    def _take_request(self, call: Call) -> None:
        self._open[json.dumps(call.id)] = call
        if call.method == INITIALIZE:
            self._hello, self._is_initialized = call, False
        elif call.method == "logging/setLevel":
            self._level = call.params
        elif call.method == "resources/subscribe":
            self._uris[str(call.params.get("uri"))] = None
        elif call.method == "resources/unsubscribe":
            self._uris.pop(str(call.params.get("uri")), None)
        if call.method in (*FIRST, LISTEN) and not self._is_ready and not self._settings.direct:
            self._in_thread(self._answer_first, call)
        self._in_thread(self._serve, call)

    def _take_notification(self, message: Message) -> None:
        params = message.get("params")
        if message["method"] == "notifications/cancelled" and isinstance(params, dict):
            call = self._open.get(json.dumps(params.get("requestId")))
            if call is not None and (call.version or call.exchange is None):
                call.cancel()
                return
            if call is not None:
                call.is_cancelled = True
        if self._hello is None:
            return
        if message["method"] == "notifications/initialized":
            self._is_initialized = True
            self._in_thread(self._begin_again)
        else:
            self._in_thread(self._notify, message)

    # Requests.

    def _serve(self, call: Call) -> None:
        try:
            if call.method == INITIALIZE:
                self._initialize(call)
            elif call.method == LISTEN:
                self._listen(call)
            else:
                self._request(call)
        except ToolscriptError as error:
            self._fail(call, f"{error.message}. {error.hint}" if error.hint else error.message)
        except Exception as error:  # noqa: BLE001 - without an answer, the client would wait for ever
            self._fail(call, f"unexpected {type(error).__name__}: {error}")
        finally:
            if self._open.get(json.dumps(call.id)) is call:
                del self._open[json.dumps(call.id)]
            for key in [key for key, asked in [*self._asked.items()] if asked[2] is call]:
                self._asked.pop(key, None)

    def _initialize(self, call: Call) -> None:
        with self._finding:
            if self._session is not None:
                self._session.leave()
                self._session = None
            session = self._upstream(call)[1]
        if session is not None and call.claim():
            self._send({**session.answer, "id": call.id})
        self._is_ready = True

    def _request(self, call: Call) -> None:
        reason = ""
        for _ in range(MAX_GATEWAYS):
            place, session = self._upstream(call)
            try:
                if call.is_cancelled or self._exchange(call, place, session):
                    return
            except NotSent as error:
                reason = str(error)
                self._lose(place, session)
            except Lost as error:
                if call.is_cancelled:
                    return
                reason = str(error)
                self._lose(place, session)
                if self._has_effect(call):
                    self._fail(call, UNKNOWN_OUTCOME)
                    return
        raise Unavailable(f"the gateway does not answer: {reason}", hint=HINT)

    def _has_effect(self, call: Call) -> bool:
        reading = {READ_RESULT} if self._settings.direct else READING
        return call.method == CALL and call.params.get("name") not in reading

    def _exchange(self, call: Call, place: Place, session: Session | None) -> bool:
        """Send the request and pass on what comes back; return whether it is answered, else nothing happened."""
        exchange = Exchange()
        if not call.goes_by(exchange):
            return True
        if session is not None:
            session.open.add(exchange)
        try:
            self._ask(exchange, "POST", place, session, call, call.line)
            if exchange.status >= 400:
                return self._refused(call, place, session, exchange)
            if not any(self._pass(data, session, call) for data in exchange.messages()) and not call.is_cancelled:
                raise Lost("it closed the connection without an answer")
            if session is not None and exchange.headers.get(SESSION_HEADER, "") != session.id:
                self._lose(place, session)
            return True
        finally:
            exchange.close()
            if session is not None:
                session.close(exchange)

    def _refused(self, call: Call, place: Place, session: Session | None, exchange: Exchange) -> bool:
        body = exchange.read()
        if self._was_unknown(place, exchange.status, body):
            return False
        if session is not None and session.id and exchange.status == 404:
            self._lose(place, session)
            return False
        error = _object(body).get("error")
        if "jsonrpc" in _object(body) and isinstance(error, dict):
            if call.claim():
                self._send({"jsonrpc": "2.0", "id": call.id, "error": error})
            return True
        self._fail(call, _words_of(_object(body), exchange.status))
        return True

    def _listen(self, call: Call) -> None:
        """Keep a subscription, also at the gateway after this one. It starts none: what is asked next does."""
        while not call.is_cancelled:
            upstream = self._upstream_now(call, starts=not call.was_heard)
            if upstream is None:
                time.sleep(WATCH_AGAIN_SECONDS)
                continue
            exchange = Exchange()
            if not call.goes_by(exchange):
                return
            with suppress(NotSent, Lost):
                self._ask(exchange, "POST", *upstream, call, call.line)
                if exchange.status >= 400:
                    if self._refused(call, *upstream, exchange):
                        return
                    continue
                if any(self._heard(data, call) for data in exchange.messages()):
                    return
            self._lose(*upstream)
            time.sleep(ENDING_SECONDS)

    def _heard(self, data: bytes, call: Call) -> bool:
        """Pass on what a subscription says; return whether it is its end. What changed between two nobody told."""
        message, call.was_heard = _object(data), True
        if message.get("method") != ACKNOWLEDGED or not call.is_acknowledged:
            call.is_acknowledged = call.is_acknowledged or message.get("method") == ACKNOWLEDGED
            return self._pass(data, None, call)
        self._tell_subscribed(message)
        return False

    def _pass(self, data: bytes, session: Session | None, call: Call | None = None) -> bool:
        """Pass a message of the gateway on; return whether it answers the call."""
        message = _object(data)
        if "method" in message:
            if "id" in message and session is not None:
                data = self._noted(message, data, session, call)
            self._write(data)
            return False
        if call is None:
            return False
        self._is_ready = True
        if call.claim():
            self._open.pop(json.dumps(call.id), None)
            self._write(data)
        elif call.method == LIST_TOOLS and message.get("result") != call.told and self._hello is not None:
            self._send({"jsonrpc": "2.0", "method": CHANGES["toolsListChanged"]})
        return True

    def _fail(self, call: Call, text: str) -> None:
        if not call.claim():
            return
        if call.method == CALL:
            kind = {"resultType": "complete"} if call.version else {}
            result = {**kind, "content": [{"type": "text", "text": text}], "isError": True}
            self._send({"jsonrpc": "2.0", "id": call.id, "result": result})
        else:
            self._send({"jsonrpc": "2.0", "id": call.id, "error": {"code": INTERNAL_ERROR, "message": text}})

    def _answer_first(self, call: Call) -> None:
        """Answer what every client asks first, where the gateway does not in time."""
        if self._first is None and self._finder.is_ready():
            time.sleep(PATIENCE_SECONDS)
        if self._is_ready or call.is_cancelled:
            return
        if call.method == LISTEN:
            self._acknowledge(call)
            return
        self._first = self._first or FirstAnswers(self._settings.data_folder, split=self._settings.split)
        asked = self._hello.params.get("protocolVersion") if self._hello is not None else None
        result = self._first.to(call.method, call.params, call.version or str(asked))
        if result is not None:
            call.told = result
            if call.claim():
                self._send({"jsonrpc": "2.0", "id": call.id, "result": result})

    def _acknowledge(self, call: Call) -> None:
        """Take a subscription: Claude Code asks for the tools after it. When the gateway does, all has changed."""
        wanted = call.params.get("notifications")
        if isinstance(wanted, dict) and not call.is_acknowledged:
            call.is_acknowledged = True
            params = {"_meta": {SUBSCRIPTION_KEY: call.id}, "notifications": wanted}
            self._send({"jsonrpc": "2.0", "method": ACKNOWLEDGED, "params": params})

    # Questions of servers, and what else the client says.

    def _noted(self, message: Message, data: bytes, session: Session, call: Call | None) -> bytes:
        """Note a question; one of another session under an id that is in use gets a new id."""
        key = json.dumps(message["id"])
        if key not in self._asked or self._asked[key][0] is session:
            self._asked[key] = (session, message["id"], call)
            return data
        name = self._number()
        self._asked[json.dumps(name)] = (session, message["id"], call)
        return json.dumps({**message, "id": name}).encode()

    def _answer_question(self, message: Message) -> None:
        asked = self._asked.pop(json.dumps(message.get("id")), None)
        if asked is None:
            return
        session, own_id, call = asked
        try:
            self._post(session.place, session, {**message, "id": own_id})
        except (NotSent, Lost):
            # Whoever asked is gone, and the call with it.
            if call is not None and call.exchange is not None:
                call.exchange.close()

    def _notify(self, message: Message) -> None:
        session = self._session
        if session is None:
            return
        try:
            self._post(session.place, session, message)
        except (NotSent, Lost):
            self._lose(session.place, session)

    # The gateway, and the session there.

    def _upstream(self, call: Call) -> tuple[Place, Session | None]:
        upstream = self._upstream_now(call, starts=True)
        if upstream is None:
            raise Unavailable("no gateway is running", hint=HINT)
        return upstream

    def _upstream_now(self, call: Call | None, *, starts: bool) -> tuple[Place, Session | None] | None:
        """Return the gateway, and the session of a client that has begun one; begin it again where it is gone."""
        with self._finding:
            for _ in range(MAX_GATEWAYS):
                place = self._place_now(starts=starts)
                if place is None:
                    return None
                if self._hello is None or (call is not None and call.version):
                    return place, None
                if self._session is not None and self._session.place.key != place.key:
                    self._session.leave()
                    self._session = None
                try:
                    if self._session is None:
                        self._session = self._begun(place)
                    elif self._is_initialized and not self._session.is_begun:
                        self._begin(self._session)
                    return place, self._session
                except (NotSent, Lost):
                    self._lose(place, self._session)
                    time.sleep(ENDING_SECONDS)
            raise Unavailable("the gateway does not answer", hint=HINT)

    def _place_now(self, *, starts: bool) -> Place | None:
        if self._place is not None and self._finder.is_current():
            self._place = self._finder.place()
            return self._place
        self._place = None
        for _ in range(MAX_GATEWAYS):
            place = self._finder.find(starts=starts)
            if place is None:
                return None
            if not self._was_lost or _is_alive(place):
                self._place, self._was_lost = place, False
                return place
            # One that is being killed accepts connections until its last moment, and a call in one would be lost.
            time.sleep(ENDING_SECONDS)
        raise Unavailable("the gateway does not answer", hint=HINT)

    def _lose(self, place: Place, session: Session | None) -> None:
        with self._finding:
            if self._place is not None and self._place.key == place.key and (session in (None, self._session)):
                self._place, self._was_lost = None, True
            if session is not None and self._session is session:
                self._session = None

    def _begun(self, place: Place) -> Session:
        """Begin a session with what the client said of itself."""
        assert self._hello is not None  # noqa: S101
        session = Session(place)
        request = {"jsonrpc": "2.0", "id": self._number(), "method": INITIALIZE, "params": self._hello.params}
        exchange, answers = self._post(place, None, request)
        if self._was_unknown(place, exchange.status, b"".join(answers)):
            exchange, answers = self._post(place, None, request)
        said = [message for data in answers if "method" not in (message := _object(data))]
        if not said:
            raise Lost("it closed the connection without an answer")
        if "jsonrpc" not in said[0]:
            raise Unavailable(_words_of(said[0], exchange.status))
        session.answer, session.id = said[0], exchange.headers.get(SESSION_HEADER, "")
        session.version = str((said[0].get("result") or {}).get("protocolVersion", ""))
        if self._is_initialized:
            self._begin(session)
        return session

    def _begin(self, session: Session) -> None:
        session.is_begun = True
        self._post(session.place, session, {"jsonrpc": "2.0", "method": "notifications/initialized"})
        for method, params in (
            *([("logging/setLevel", self._level)] if self._level else ()),
            *(("resources/subscribe", {"uri": uri}) for uri in [*self._uris]),
        ):
            request = {"jsonrpc": "2.0", "id": self._number(), "method": method, "params": params}
            self._post(session.place, session, request)
        self._in_thread(self._follow, session)
        if self._had_session:
            # What changed meanwhile nobody told.
            for method in CHANGES.values():
                self._send({"jsonrpc": "2.0", "method": method})
            for uri in [*self._uris]:
                self._send({"jsonrpc": "2.0", "method": UPDATED, "params": {"uri": uri}})
        self._had_session = True

    def _begin_again(self) -> None:
        try:
            self._upstream_now(None, starts=True)
        except ToolscriptError:
            return

    def _follow(self, session: Session) -> None:
        """Pass on what the gateway says by itself. Where that ends, go on at the next gateway, and start none."""
        try:
            self._ask(session.stream, "GET", session.place, session)
            if session.stream.status != 200:
                return
            for data in session.stream.messages():
                self._pass(data, session)
        except (NotSent, Lost):
            pass
        finally:
            session.stream.close()
        if session.is_left:
            return
        self._lose(session.place, session)
        time.sleep(ENDING_SECONDS)
        while self._session is None:
            try:
                if self._upstream_now(None, starts=False) is not None:
                    return
            except ToolscriptError:
                pass
            time.sleep(WATCH_AGAIN_SECONDS)

    def _tell_subscribed(self, acknowledged: Message) -> None:
        params = acknowledged.get("params") or {}
        meta, honoured = {"_meta": params.get("_meta", {})}, params.get("notifications") or {}
        for name, method in CHANGES.items():
            if honoured.get(name):
                self._send({"jsonrpc": "2.0", "method": method, "params": meta})
        for uri in honoured.get("resourceSubscriptions") or ():
            self._send({"jsonrpc": "2.0", "method": UPDATED, "params": {**meta, "uri": uri}})

    def _post(self, place: Place, session: Session | None, message: Message) -> tuple[Exchange, list[bytes]]:
        exchange = Exchange()
        self._ask(exchange, "POST", place, session, body=json.dumps(message).encode())
        return exchange, [*exchange.messages()]

    def _ask(
        self,
        exchange: Exchange,
        method: str,
        place: Place,
        session: Session | None,
        call: Call | None = None,
        body: bytes = b"",
    ) -> None:
        exchange.send(place.address, method, self._path, self._headers(place, session, call), body)

    def _was_unknown(self, place: Place, status: int, body: bytes) -> bool:
        """Tell a gateway that does not know the workspace what it is; return whether it was so."""
        details = _object(body).get("error") or {}
        if status != 404 or place.workspace is None or "workspace" not in str(details.get("details", details)):
            return False
        scheme = "https" if place.address.is_secure else "http"
        root = Place(Address(f"{scheme}://{place.address.place}"), place.token)
        exchange, body = Exchange(), json.dumps(place.workspace).encode()
        exchange.send(root.address, "POST", "/workspaces", self._headers(root, None), body)
        said = _object(exchange.read()).get("error")
        if exchange.status >= 400:
            raise Unavailable(str((said or {}).get("message", "the gateway refuses this folder")), hint=HINT)
        return True

    def _headers(self, place: Place, session: Session | None, call: Call | None = None) -> dict[str, str]:
        says = {"split": self._settings.split, "search_type": self._settings.search_type, "note": place.note}
        headers = {
            "Accept": "application/json, text/event-stream",
            "Content-Type": "application/json",
            PIPE_HEADER: json.dumps({name: value for name, value in says.items() if value}),
        }
        if place.token:
            headers["Authorization"] = f"Bearer {place.token}"
        if call is not None and call.version:
            headers |= {"MCP-Protocol-Version": _plain(call.version), "Mcp-Method": _plain(call.method)}
            if isinstance(name := call.params.get(NAMED.get(call.method, "")), str):
                headers["Mcp-Name"] = _header_value(name)
        elif session is not None and session.id:
            headers |= {"MCP-Protocol-Version": session.version, "Mcp-Session-Id": session.id}
        return headers

    # What is written.

    def _number(self) -> str:
        self._numbers += 1
        return f"toolscript-{self._numbers}"

    def _send(self, message: Message) -> None:
        self._write(json.dumps(message, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace"))

    def _write(self, data: bytes) -> None:
        left = memoryview(data + b"\n")
        with self._writes:
            try:
                while left:
                    left = left[os.write(self._writing, left) :]
            except OSError:
                # The client is gone.
                os._exit(0)

    @staticmethod
    def _in_thread(action: Any, *arguments: object) -> None:
        threading.Thread(target=action, args=arguments, daemon=True).start()


def _lines(descriptor: int) -> Iterator[bytes]:
    rest: list[bytes] = []
    while data := os.read(descriptor, READ_BYTES):
        *lines, last = data.split(b"\n")
        for line in lines:
            yield b"".join((*rest, line))
            rest.clear()
        rest.append(last)
    yield b"".join(rest)


def _object(data: bytes) -> Message:
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _words_of(body: Message, status: int) -> str:
    """Return what the gateway says of a request that it refused before MCP."""
    error = body.get("error")
    words = error if isinstance(error, dict) else {"message": f"HTTP {status}"}
    return ". ".join(str(words[name]) for name in ("message", "hint") if words.get(name))


def _is_alive(place: Place) -> bool:
    exchange = Exchange()
    scheme = "https" if place.address.is_secure else "http"
    try:
        exchange.send(Address(f"{scheme}://{place.address.place}"), "GET", "/livez", {}, b"")
        return b"alive" in exchange.read()
    except (NotSent, Lost):
        return False


def _plain(text: str) -> str:
    return "".join(letter for letter in text if " " <= letter <= "~")


def _header_value(text: str) -> str:
    """Return a value as headers of MCP have it: in base64 where it would not arrive as it is."""
    if text and text == text.strip() and _plain(text) == text and not text.startswith("=?base64?"):
        return text
    return f"=?base64?{b64encode(text.encode('utf-8', 'replace')).decode()}?="


def run_bridge(settings: BridgeSettings) -> None:
    """Serve the client on stdin and stdout until it closes stdin."""
    finder = Finder(settings)
    bridge = Bridge(settings, finder, os.dup(0), os.dup(1))
    # Children and stray output must not meet the messages.
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    os.dup2(2, 1)
    try:
        bridge.run()
    except KeyboardInterrupt:
        finder.close()
        os._exit(130)
    os._exit(0)
