"""The command that compares what clients see directly and through a gateway."""

import asyncio
import tempfile
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from toolscript.cli.options import AsJson
from toolscript.cli.output import progress, show, table
from toolscript.core.errors import InvalidRequest, SetupError

if TYPE_CHECKING:
    from benchmarks.features.compare import Finding

MAX_EXAMPLES = 3


def add_bench_features(app: typer.Typer) -> None:
    @app.command()
    def features(
        config: Annotated[
            Path | None,
            typer.Argument(help="Config file with the servers; none: nine servers of npm, at fixed versions."),
        ] = None,
        clients: Annotated[
            str, typer.Option(help="Of python, typescript and inspector, with commas.")
        ] = "python,typescript,inspector",
        folder: Annotated[
            Path | None, typer.Option(help="Where npm installs servers and clients; it is kept for the next run.")
        ] = None,
        as_json: AsJson = False,
    ) -> None:
        """Each feature of MCP servers, as clients see it directly and through a gateway.

        Fails where a difference has no reason yet. Needs Node and npm; no engines.
        """
        from benchmarks.features.run import CLIENTS, compare_features

        wanted = clients.split(",")
        if unknown := [client for client in wanted if client not in CLIENTS]:
            raise InvalidRequest(f"no client is called {unknown[0]!r}", hint=f"there are {', '.join(CLIENTS)}")
        place = folder or Path(tempfile.gettempdir()) / "toolscript-features"
        with progress() as on_progress:
            findings = asyncio.run(compare_features(config, place, wanted, on_progress))
        show({"findings": [asdict(finding) for finding in findings]}, findings_text(findings), as_json=as_json)
        if unexplained := sum(len(finding.unexplained) for finding in findings):
            raise SetupError(f"{unexplained} differences have no reason yet")


def findings_text(findings: Sequence["Finding"]) -> str:
    """Render how much is the same, by feature and endpoint, and each kind of difference once."""
    endpoints = list(dict.fromkeys(finding.endpoint for finding in findings))
    features = list(dict.fromkeys(finding.feature for finding in findings))
    rows = [[feature, *(_share(findings, feature, endpoint) for endpoint in endpoints)] for feature in features]
    return "\n".join([table(["Feature", *endpoints], rows, colour=False), "", *_differences(findings)])


def _share(findings: Iterable["Finding"], feature: str, endpoint: str) -> str:
    found = [finding for finding in findings if (finding.feature, finding.endpoint) == (feature, endpoint)]
    same = sum(finding.is_same for finding in found)
    explained = sum(not finding.is_same and not finding.unexplained for finding in found)
    return f"{same} of {len(found)}" + (f", {explained} differ for a reason" if explained else "")


def _differences(findings: Iterable["Finding"]) -> list[str]:
    times: Counter[tuple[str, str]] = Counter()
    places: dict[tuple[str, str], list[str]] = {}
    for finding in findings:
        for difference in finding.differences:
            kind = finding.feature, difference.reason or f"WITHOUT A REASON: {finding.key} {difference.text}"
            times[kind] += 1
            place = f"{finding.client} at {finding.endpoint}, {finding.server}"
            if place not in places.setdefault(kind, []):
                places[kind].append(place)
    return [
        f"{feature}: {reason} ({times[feature, reason]} times: {_some(shown)})"
        for (feature, reason), shown in _sorted(places)
    ]


def _sorted(places: Mapping[tuple[str, str], list[str]]) -> list[tuple[tuple[str, str], list[str]]]:
    return sorted(places.items())


def _some(places: Sequence[str]) -> str:
    return "; ".join([*places[:MAX_EXAMPLES], *(["..."] if len(places) > MAX_EXAMPLES else [])])
