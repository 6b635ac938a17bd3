"""A small part of what tests/e2e/tenants/killed_service.py does."""

import pytest

from tests.conftest import Installation
from tests.e2e.tenants.killed_service import DOCUMENTS, TENANTS, killed


@pytest.mark.nightly
@pytest.mark.requirement("DOC-006")
def test_whoever_kills_the_service_finds_documents_whole_once_they_are_sent_again(
    installation: Installation,
) -> None:
    found = killed(installation, kills=2, seed=5, lengths=(1, 2, 8, 30))
    assert found.wrong == []
    assert len(found.acknowledged) == len(TENANTS) * DOCUMENTS
