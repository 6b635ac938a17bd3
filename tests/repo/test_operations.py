"""The procedures of the operations page run unchanged on a cluster with documents of a tenant."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import Installation
from tests.repo.shell_pages import ROOT, code_of, run
from tests.support.clusters import Cluster, fresh_cluster
from tests.support.reserved_ports import reserved_port

PAGE = (ROOT / "docs" / "operations.md").read_text("utf-8")
BEFORE = """
trap 'test -z "${SERVER:-}" || kill "$SERVER" 2>/dev/null || true' EXIT
toolscript migrate
toolscript ingest docs/glossary.md
toolscript worker --drain
toolscript tenants keys keys
export TOOLSCRIPT_JWT_KEYS=keys/jwks.json TOOLSCRIPT_JWT_ISSUER=https://issuer.example
export TOOLSCRIPT_TOKEN="$(toolscript tenants token acme --key keys/signing-key.json)"
toolscript serve &
SERVER=$!
curl -sf --retry 60 --retry-connrefused --retry-delay 1 "http://127.0.0.1:$TOOLSCRIPT_PORT/readyz"
toolscript documents put docs/skills.md docs/access.md
"""
SEARCH = """
toolscript documents search "who decides which skill a tool is in" --limit 1 --json
"""


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with fresh_cluster() as started:
        yield started


def sections() -> dict[str, str]:
    _, *parts = PAGE.split("\n## ")
    return {part.splitlines()[0]: "\n".join(code_of(part, "sh")) for part in parts}


def said_by(output: str, title: str) -> str:
    return output.split(f"=== {title}\n")[1].split("\n=== ", maxsplit=1)[0]


def indexes(shown: str, product: str) -> list[list[str]]:
    """Return state, model, points and shards of the indexes of a product, from the last output of `doctor`."""
    *_, last = shown.split("product ")
    rows = [line.split() for line in last.splitlines()]
    return [row[2:6] for row in rows if row and row[0] == product]


@pytest.mark.nightly
@pytest.mark.requirement("SK-003", "DOC-006")
async def test_the_page_works_as_written(
    installation: Installation, cluster: Cluster, other_model: str, tmp_path: Path
) -> None:
    (tmp_path / "docs").symlink_to(ROOT / "docs")
    parts = [f"echo '=== {title}'\n{script}\n{SEARCH}" for title, script in sections().items()]
    with reserved_port() as port:
        environment = {
            **os.environ,
            **installation.environment,
            "TOOLSCRIPT_QDRANT_URL": f"http://127.0.0.1:{cluster.grpc_port(1) - 1}",
            "TOOLSCRIPT_QDRANT_GRPC_PORT": str(cluster.grpc_port(1)),
            "TOOLSCRIPT_DOCUMENT_SHARDS": "6",
            "TOOLSCRIPT_PORT": str(port),
            "NEW_MODEL": other_model,
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        }
        code = await run("\n".join([BEFORE, *parts]), environment, tmp_path / "page.out", tmp_path)
    output, errors = ((tmp_path / f"page.{end}").read_text("utf-8") for end in ("out", "err"))
    assert code == 0, output + errors
    result = {title: said_by(output, title) for title in sections()}
    assert [title for title, message in result.items() if '"skills.md"' not in message] == []

    first = indexes(result["See where you are"], "documents")
    moved = indexes(result["Another model"], "documents")
    last = indexes(result["Remove what was before"], "documents")
    assert [(state, shards) for state, _, _, shards in first] == [("live", "6")]
    assert sorted(state for state, *_ in moved) == ["live", "previous"]
    assert len({model for _, model, *_ in moved}) == 2
    assert [(state, shards) for state, _, _, shards in last] == [("live", "15")]
    assert last[0][1:3] == first[0][1:3]
    assert [state for state, *_ in indexes(result["Remove what was before"], "tools")] == ["live"]
