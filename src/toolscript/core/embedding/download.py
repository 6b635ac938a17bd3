"""A model from the hub, file by file: resumed where it broke off, and checked against the hash the hub names."""

import errno
import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import httpx
from huggingface_hub import constants, hf_hub_download, hf_hub_url
from huggingface_hub.errors import EntryNotFoundError
from huggingface_hub.utils import build_hf_headers, get_session  # type: ignore[attr-defined]

from toolscript.core.embedding.download_failures import REFUSED_SECONDS, UNREACHABLE_SECONDS, Refusals
from toolscript.core.errors import ModelNotFound
from toolscript.core.values import OnProgress, Progress

REACH_SECONDS = 5.0
OF_THIS_DISK = (errno.ENOSPC, errno.EACCES, errno.EROFS, errno.EDQUOT, errno.ENAMETOOLONG)
NEEDED = ("config.json", "tokenizer.json", "tokenizer_config.json")
USED_IF_THERE = ("special_tokens_map.json", "preprocessor_config.json")


def download(model: str, described: Mapping[str, Any], folder: Path, on_progress: OnProgress) -> None:
    """Into the hub's own layout under `folder`, where fastembed finds it."""
    refusals, source = Refusals(folder), str(described["sources"]["hf"])
    where = f"the embedding model {model} is not on this machine, and {constants.ENDPOINT}"
    try:
        status = _status_of(source)
        if status < 400:
            _download_files(source, described, folder, on_progress)
    except ModelNotFound as error:
        raise refusals.add(model, error.message, UNREACHABLE_SECONDS) from error
    except (httpx.HTTPError, OSError) as error:
        if isinstance(error, OSError) and error.errno in OF_THIS_DISK:
            raise ModelNotFound(
                f"the embedding model {model} cannot be kept in {folder}: {error.strerror}",
                hint="make room there, or choose another folder with --data-dir",
            ) from error
        raise refusals.add(model, f"{where} cannot be reached", UNREACHABLE_SECONDS) from error
    if status >= 400:
        raise refusals.add(model, f"{where} refused it (HTTP {status})", REFUSED_SECONDS)
    refusals.forget()


def _download_files(source: str, described: Mapping[str, Any], folder: Path, on_progress: OnProgress) -> None:
    for name in (*NEEDED, *USED_IF_THERE, described["model_file"], *described.get("additional_files", ())):
        _download_file(source, name, folder, on_progress)


def _status_of(source: str) -> int:
    """Asked once and before all else: the hub's own library asks again and again before it gives up."""
    url = hf_hub_url(source, NEEDED[0])
    answer = get_session().head(url, headers=build_hf_headers(), timeout=REACH_SECONDS, follow_redirects=True)
    return answer.status_code


def _download_file(source: str, name: str, folder: Path, on_progress: OnProgress) -> None:
    shown = _bar_that_tells(f"downloading {name}, KiB", on_progress)
    try:
        path = Path(hf_hub_download(source, name, cache_dir=folder, etag_timeout=REACH_SECONDS, tqdm_class=shown))
    except EntryNotFoundError:
        if name in USED_IF_THERE:
            return
        raise
    blob = path.resolve()
    if not _is_as_named(blob):
        path.unlink(missing_ok=True)
        blob.unlink(missing_ok=True)
        raise ModelNotFound(f"{name} of {source} arrived damaged: its hash is not the one the hub names")


def _bar_that_tells(label: str, on_progress: OnProgress) -> Any:
    """The hub's library draws bars of its own; ours are drawn by whoever shows everything else."""

    class Bar:
        def __init__(self, total: float | None = None, initial: float = 0, **_: object) -> None:
            self.total, self.n = total, initial

        def update(self, more: float) -> None:
            self.n += more
            on_progress(Progress(label, int(self.n) >> 10, int(self.total) >> 10 if self.total else None))

        def __enter__(self) -> "Bar":
            return self

        def __exit__(self, *_: object) -> None: ...

    return Bar


def _is_as_named(blob: Path) -> bool:
    """The hub names a large file by its SHA-256, and a small one as git does."""
    with blob.open("rb") as file:
        if len(blob.name) == 64:
            return hashlib.file_digest(file, "sha256").hexdigest() == blob.name
        git = hashlib.sha1(f"blob {blob.stat().st_size}\0".encode(), usedforsecurity=False)
        git.update(file.read())
        return len(blob.name) != 40 or git.hexdigest() == blob.name
