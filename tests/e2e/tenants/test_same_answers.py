"""A small part of what tests/e2e/tenants/same_answers.py compares at full size."""

import pytest

from tests.conftest import Installation
from tests.e2e.tenants.same_answers import compared


@pytest.mark.nightly
@pytest.mark.requirement("DOC-004")
def test_answers_are_the_same_with_and_without_another_tenant_of_the_same_words(
    installation: Installation,
) -> None:
    result = compared(installation, sizes=[3, 40], neighbour=150, dimensions=64, thorough=False)
    assert result.differences == []
    assert result.compared > 200
