"""A small part of what tests/e2e/tenants/killed_service.py does."""

import pytest

from tests.conftest import Installation
from tests.e2e.tenants.killed_service import DOCUMENTS, TENANTS, killed


@pytest.mark.nightly
@pytest.mark.requirement("DOC-006")
def test_after_a_kill_documents_are_complete_once_they_are_resent(
    installation: Installation,
) -> None:
    result = killed(installation, kills=2, seed=5, lengths=(1, 2, 8, 30))
    assert result.wrong == []
    assert len(result.acknowledged) == len(TENANTS) * DOCUMENTS
