"""The command line with a Qdrant that requires a key, over TLS with a private CA, by settings alone."""

import json
from pathlib import Path

from tests.conftest import Installation
from tests.e2e import catalog_files
from tests.e2e.commands import run_here
from tests.support.certificates import PrivateCa
from tests.support.secured_qdrant import engine_folder, secured_qdrant

KEY = "a-key-that-writes"


def test_commands_reach_a_qdrant_with_a_key(installation: Installation, tmp_path: Path) -> None:
    file = str(catalog_files.write(tmp_path / "items.jsonl", catalog_files.rows(3)))
    with engine_folder("keyed") as folder, secured_qdrant(folder, [f"api_key: {KEY}"]) as port:
        mine = {
            **installation.environment,
            "TOOLSCRIPT_QDRANT_GRPC_PORT": str(port),
            "TOOLSCRIPT_QDRANT_API_KEY": KEY,
        }
        run_here(mine, "sync", file)
        assert json.loads(run_here(mine, "worker", "--drain", "--json").stdout)["indexed"] == 3
        wrong = {**mine, "TOOLSCRIPT_QDRANT_API_KEY": "another-key"}
        refused = run_here(wrong, "doctor", "--index", code=2)
    assert "is TOOLSCRIPT_QDRANT_API_KEY right?" in refused.stderr
    assert KEY not in refused.stderr


def test_commands_reach_a_qdrant_whose_certificate_a_private_ca_has_signed(
    installation: Installation, tmp_path: Path
) -> None:
    file = str(catalog_files.write(tmp_path / "items.jsonl", catalog_files.rows(3)))
    with engine_folder("secured") as folder:
        ca = PrivateCa(folder)
        own, client = ca.sign("server"), ca.sign("client")
        tls = ["tls:", f"  cert: {own.certificate}", f"  key: {own.key}"]
        with secured_qdrant(folder, ["enable_tls: true", f"api_key: {KEY}"], tls) as port:
            mine = {
                **installation.environment,
                "TOOLSCRIPT_QDRANT_URL": "https://localhost:6333",
                "TOOLSCRIPT_QDRANT_GRPC_PORT": str(port),
                "TOOLSCRIPT_QDRANT_API_KEY": KEY,
                "TOOLSCRIPT_QDRANT_CA_FILE": ca.file,
                "TOOLSCRIPT_QDRANT_CLIENT_CERTIFICATE": client.certificate,
                "TOOLSCRIPT_QDRANT_CLIENT_KEY": client.key,
            }
            run_here(mine, "sync", file)
            assert json.loads(run_here(mine, "worker", "--drain", "--json").stdout)["indexed"] == 3
