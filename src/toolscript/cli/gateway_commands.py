"""What the command line asks of the gateway."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from toolscript.cli.evaluate import EvalCommands
from toolscript.cli.evaluate_fit import FitCommands
from toolscript.cli.evaluate_make import MakeCommands
from toolscript.cli.evaluate_page import PageCommands
from toolscript.model.items import ItemKind
from toolscript.model.progress import OnProgress

if TYPE_CHECKING:
    from toolscript.model.gateway import GatewayHealth, LocalQuery
    from toolscript.model.measurements import Comparison
    from toolscript.ports import Gateway

T = TypeVar("T")


class MakeNeed(Protocol):
    def __call__(
        self, *, model: bool = True, remembers: bool = True, refresh: bool = False, only_server: str | None = None
    ) -> Any: ...


class GatewayCommands(EvalCommands, FitCommands, MakeCommands, PageCommands, Protocol):
    @property
    def Need(self) -> MakeNeed: ...  # noqa: N802
    def ask(
        self,
        action: "Callable[[Gateway], Awaitable[T]]",
        *,
        flags: Mapping[str, object],
        need: Any,
        on_progress: OnProgress,
    ) -> T: ...
    def usual_query(
        self, *, limit: int | None, threshold: float | None, kind: ItemKind | None
    ) -> "Callable[[str], LocalQuery]": ...
    def start(self, *, flags: Mapping[str, object], on_ready: Callable[[str], None], background: bool) -> None: ...
    def status(self, *, flags: Mapping[str, object]) -> "tuple[Any, GatewayHealth | None]": ...
    def find(self, *, flags: Mapping[str, object]) -> Any: ...
    def stop(self, *, flags: Mapping[str, object]) -> Any: ...
    def serve_stdio(self, *, flags: Mapping[str, object]) -> None: ...
    def examine(self, *, flags: Mapping[str, object], on_progress: OnProgress) -> Sequence[Any]: ...
    def plan_import(self, *, clients: Sequence[str], target: Path | None, project: bool = False) -> Any: ...
    def write_import(self, planned: Any) -> tuple[str, ...]: ...
    def trust_question(self, *, flags: Mapping[str, object], file: Path | None = None) -> Any: ...
    def decide_trust(self, question: Any, *, trusted: bool) -> None: ...
    def forget_trust(self, *, flags: Mapping[str, object], file: Path | None) -> tuple[Path, bool] | None: ...
    def list_trusted(self) -> Sequence[Any]: ...
    def connect(self, client: str, *, undo: bool, write: bool, http: bool = False) -> Any: ...
    def bench_tokens(
        self, tools: Path, queries: Path, *, limit: int, model: str | None, on_progress: OnProgress
    ) -> dict[str, object]: ...
    def bench_gateway(
        self, tools: Path, queries: Path, *, limit: int, model: str | None, on_progress: OnProgress
    ) -> "Comparison": ...
