"""eval page: reads reports, and writes the page of results with its picture beside it."""

import json
import shlex
from collections.abc import Sequence
from pathlib import Path

from toolscript.errors import InvalidRequest, NotFound
from toolscript.evaluation.quality_page import quality_page
from toolscript.evaluation.quality_plot import quality_plot
from toolscript.evaluation.quality_rows import rows_of
from toolscript.evaluation.report_json import report_from_json
from toolscript.model.judged import EvalReport, WrittenPage

HINT = "give files that `toolscript eval --out FILE` wrote"


def make_page(reports: Sequence[Path], *, out: Path) -> WrittenPage:
    """Both files are made before one of them is written."""
    plot = _plot_beside(out, reports)
    read = [_report(path) for path in reports]
    page = quality_page(read, command=_command(reports, out), plot=plot.name)
    picture = quality_plot(read)
    _write(plot, picture)
    _write(out, page)
    return WrittenPage(str(out), str(plot), sets=len(rows_of(read)), reports=len(read))


def _plot_beside(out: Path, reports: Sequence[Path]) -> Path:
    plot = out.with_suffix(".svg") if out.name else out
    if not out.name or out.is_dir() or plot == out:
        raise InvalidRequest(f"{out} is no name for a page", hint="give a file like docs/quality.md")
    taken = {path.resolve() for path in reports} & {out.resolve(), plot.resolve()}
    if taken:
        raise InvalidRequest(f"{out} would overwrite a report", hint="give another name to the page")
    return plot


def _report(path: Path) -> EvalReport:
    try:
        data = json.loads(path.read_text("utf-8"))
    except OSError as error:
        raise NotFound(f"cannot read {path}: {error.strerror}", hint=HINT) from None
    except ValueError as error:
        raise InvalidRequest(f"{path} is not JSON: {error}", hint=HINT) from None
    if not isinstance(data, dict):
        raise InvalidRequest(f"{path} holds no report", hint=HINT)
    try:
        return report_from_json(data)
    except InvalidRequest as error:
        raise InvalidRequest(f"{path}: {error.message}", hint=HINT) from None


def _command(reports: Sequence[Path], out: Path) -> str:
    return shlex.join(["toolscript", "eval", "page", *map(_told, reports), "--out", _told(out)])


def _told(path: Path) -> str:
    """A page is for others: where a file lies on this machine is no part of it."""
    here, there = Path.cwd().resolve(), path.resolve()
    return there.relative_to(here).as_posix() if there.is_relative_to(here) else path.name


def _write(path: Path, text: str) -> None:
    unfinished = path.with_name(f".{path.name}.unfinished")
    try:
        unfinished.write_text(text, "utf-8")
        unfinished.replace(path)
    except OSError as error:
        raise InvalidRequest(
            f"cannot write {path}: {error.strerror}", hint="give a file in a folder that is there"
        ) from None
