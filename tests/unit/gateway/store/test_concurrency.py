"""Concurrent readers and writers of one file, in threads and processes."""

import json
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

from toolscript.core.atomic_files import write_json_atomically
from toolscript.core.retrieval.model import IndexCard, ModelCard
from toolscript.gateway.store.embeddings import EmbeddingFile

pytestmark = [pytest.mark.requirement("TS-007"), pytest.mark.slow]

CARD = IndexCard(ModelCard("small", "1", 8))
WRITER = """
import sys
import numpy as np
from pathlib import Path
from toolscript.gateway.store.embeddings import EmbeddingFile
from toolscript.core.retrieval.model import IndexCard, ModelCard
folder, mark = Path(sys.argv[1]), int(sys.argv[2])
file = EmbeddingFile(folder, ["s"], IndexCard(ModelCard("small", "1", 8)))
print("ready", flush=True)
sys.stdin.readline()
vector = np.eye(8, dtype=np.float32)[mark]
for _ in range(40):
    file.remember({f"s__{number}": (f"hash-{number}", vector) for number in range(50)})
"""


def test_a_reader_sees_the_old_file_or_the_new_one(tmp_path: Path) -> None:
    path, done, seen = tmp_path / "file.json", threading.Event(), set[int]()
    write_json_atomically(path, [0] * 5_000)

    def read() -> None:
        while not done.is_set():
            numbers = json.loads(path.read_text("utf-8"))
            assert len(numbers) == 5_000
            assert len(set(numbers)) == 1
            seen.add(numbers[0])

    failures: list[BaseException] = []

    def guarded() -> None:
        try:
            read()
        except BaseException as error:  # noqa: BLE001
            failures.append(error)

    readers = [threading.Thread(target=guarded) for _ in range(2)]
    for reader in readers:
        reader.start()
    for round_ in range(1, 60):
        write_json_atomically(path, [round_] * 5_000)
    done.set()
    for reader in readers:
        reader.join(10)
    assert failures == []
    assert seen


def test_a_failed_write_leaves_only_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "file.json"
    write_json_atomically(path, "old")
    with pytest.raises(TypeError):
        write_json_atomically(path, {"a": object()})
    assert [file.name for file in tmp_path.iterdir()] == ["file.json"]
    assert json.loads(path.read_text("utf-8")) == "old"


def test_two_processes_that_write_leave_the_whole_of_one(tmp_path: Path) -> None:
    command = [sys.executable, "-c", WRITER, str(tmp_path)]
    writers = [
        subprocess.Popen([*command, mark], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for mark in ("1", "2")
    ]
    for writer in writers:
        assert writer.stdout is not None
        assert writer.stdout.readline() == "ready\n"
    for writer in writers:
        assert writer.stdin is not None
        writer.stdin.write("go\n")
        writer.stdin.flush()
    hashes = [f"hash-{number}" for number in range(50)]
    while any(writer.poll() is None for writer in writers):
        vectors = EmbeddingFile(tmp_path, ["s"], CARD).recall(hashes)
        assert len(vectors) in (0, 50)
        assert len({tuple(vector) for vector in vectors.values()}) <= 1
    for writer in writers:
        writer.communicate(timeout=30)
    assert [writer.returncode for writer in writers] == [0, 0]
    vectors = EmbeddingFile(tmp_path, ["s"], CARD).recall(hashes)
    assert {int(np.argmax(vector)) for vector in vectors.values()} in ({1}, {2})
    assert len(list(tmp_path.iterdir())) == 1
