import pytest

from tests.conftest import Installation
from tests.surfaces.tenants.filled import Tenants


@pytest.fixture
def tenants(installation: Installation) -> Tenants:
    return Tenants(installation)
