import pytest

from tests.conftest import Installation
from tests.unit.documents.tenants_http.filled import Tenants


@pytest.fixture
def tenants(installation: Installation) -> Tenants:
    return Tenants(installation)
