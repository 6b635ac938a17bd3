"""Two namespaces on the real engines, in small; `namespaces_at_scale` is the same at full size."""

import pytest

from tests.conftest import Installation
from tests.engines.namespaces_at_scale import ALPHA, isolated
from toolscript.core.namespaces import DEFAULT_NAMESPACE

pytestmark = pytest.mark.requirement("AP-005")


@pytest.mark.parametrize("namespace", [ALPHA, DEFAULT_NAMESPACE])
async def test_a_namespace_answers_the_same_before_beside_and_after_another_one(
    installation: Installation, namespace: str
) -> None:
    result = await isolated(installation.settings, items=300, searches=120, seed=3, namespace=namespace)
    assert result.compared == 144
    assert min(result.hits, result.empty) > 0
    assert (result.different, result.leaks) == ([], [])
