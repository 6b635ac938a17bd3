"""Download a model from the hub, file by file: resumable, and checked against the hub's hash."""

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
DISK_ERRORS = (errno.ENOSPC, errno.EACCES, errno.EROFS, errno.EDQUOT, errno.ENAMETOOLONG)
REQUIRED = ("config.json", "tokenizer.json", "tokenizer_config.json")
OPTIONAL = ("special_tokens_map.json", "preprocessor_config.json")


def download(model: str, described: Mapping[str, Any], folder: Path, on_progress: OnProgress) -> None:
    """Download into the hub's own layout under `folder`, where fastembed looks for it."""
    refusals, source = Refusals(folder), str(described["sources"]["hf"])
    problem = f"the embedding model {model} is not on this machine, and {constants.ENDPOINT}"
    try:
        status = _status_of(source)
        if status < 400:
            _download_files(source, described, folder, on_progress)
    except ModelNotFound as error:
        raise refusals.add(model, error.message, UNREACHABLE_SECONDS) from error
    except (httpx.HTTPError, OSError) as error:
        if isinstance(error, OSError) and error.errno in DISK_ERRORS:
            raise ModelNotFound(
                f"the embedding model {model} cannot be stored in {folder}: {error.strerror}",
                hint="make room there, or choose another folder with --data-dir",
            ) from error
        raise refusals.add(model, f"{problem} cannot be reached", UNREACHABLE_SECONDS) from error
    if status >= 400:
        raise refusals.add(model, f"{problem} refused it (HTTP {status})", REFUSED_SECONDS)
    refusals.forget()


def _download_files(source: str, described: Mapping[str, Any], folder: Path, on_progress: OnProgress) -> None:
    for name in (*REQUIRED, *OPTIONAL, described["model_file"], *described.get("additional_files", ())):
        _download_file(source, name, folder, on_progress)


def _status_of(source: str) -> int:
    """Send a single request first: the hub's own library retries for long before it fails."""
    url = hf_hub_url(source, REQUIRED[0])
    response = get_session().head(url, headers=build_hf_headers(), timeout=REACH_SECONDS, follow_redirects=True)
    return response.status_code


def _download_file(source: str, name: str, folder: Path, on_progress: OnProgress) -> None:
    progress_bar = _progress_bar(f"downloading {name}, KiB", on_progress)
    try:
        path = Path(
            hf_hub_download(source, name, cache_dir=folder, etag_timeout=REACH_SECONDS, tqdm_class=progress_bar)
        )
    except EntryNotFoundError:
        if name in OPTIONAL:
            return
        raise
    blob = path.resolve()
    if not _matches_its_name(blob):
        path.unlink(missing_ok=True)
        blob.unlink(missing_ok=True)
        raise ModelNotFound(f"{name} of {source} arrived damaged: its hash differs from the hub's")


def _progress_bar(label: str, on_progress: OnProgress) -> Any:
    """Return a tqdm class that reports to `on_progress` instead of drawing a bar."""

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


def _matches_its_name(blob: Path) -> bool:
    """Check the content: the hub names a large file by its SHA-256, and a small one by its git blob hash."""
    with blob.open("rb") as file:
        if len(blob.name) == 64:
            return hashlib.file_digest(file, "sha256").hexdigest() == blob.name
        git = hashlib.sha1(f"blob {blob.stat().st_size}\0".encode(), usedforsecurity=False)
        git.update(file.read())
        return len(blob.name) != 40 or git.hexdigest() == blob.name
