"""Pictures and other files in a result are saved, and no file is overwritten."""

import base64
from pathlib import Path

import pytest

from toolscript.cli.saved_files import MAX_FILES, with_saved_files
from toolscript.core.errors import SetupError
from toolscript.core.mcp_client.model import CallResult

pytestmark = pytest.mark.requirement("TS-010")

PNG = {"type": "image", "mimeType": "image/png", "data": base64.b64encode(b"picture").decode()}


def paths_of(result: CallResult) -> list[Path]:
    return [Path(str(block["text"])) for block in result.content]


def test_every_kind_of_file_is_saved_under_a_new_name(tmp_path: Path) -> None:
    sound = {"type": "audio", "mimeType": "audio/x-unknown", "data": base64.b64encode(b"sound").decode()}
    blob = base64.b64encode(b"%PDF").decode()
    resource = {"type": "resource", "resource": {"uri": "a:b", "mimeType": "application/pdf", "blob": blob}}
    result = CallResult([PNG, sound, resource])
    first = paths_of(with_saved_files(result, "a__../b c", tmp_path / "new"))
    assert [path.name for path in first] == ["a__-b-c-1.png", "a__-b-c-2.bin", "a__-b-c-3.pdf"]
    assert [path.read_bytes() for path in first] == [b"picture", b"sound", b"%PDF"]
    second = paths_of(with_saved_files(result, "a__../b c", tmp_path / "new"))
    assert not {*first} & {*second}
    assert [path.read_bytes() for path in first] == [b"picture", b"sound", b"%PDF"]


def test_without_a_folder_a_new_private_one_is_made() -> None:
    (path,) = paths_of(with_saved_files(CallResult([PNG]), "a__b", None))
    assert path.read_bytes() == b"picture"
    assert path.stat().st_mode & 0o077 == 0
    path.unlink()
    path.parent.rmdir()


def test_text_stays_and_what_is_no_base64_is_said_to_be_so(tmp_path: Path) -> None:
    text = {"type": "text", "text": "hello"}
    assert with_saved_files(CallResult([text]), "a__b", tmp_path).content == [text]
    shown = with_saved_files(CallResult([text, {**PNG, "data": "no base64!"}]), "a__b", tmp_path).content
    assert [block["text"] for block in shown] == ["hello", "[image image/png is not base64]"]


def test_the_number_of_files_is_bounded(tmp_path: Path) -> None:
    shown = with_saved_files(CallResult([PNG] * (MAX_FILES + 1)), "a__b", tmp_path).content
    assert len([*tmp_path.iterdir()]) == MAX_FILES
    assert f"no more than {MAX_FILES} files" in str(shown[-1]["text"])


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(SetupError, match="cannot be written") as refused:
        with_saved_files(CallResult([PNG]), "a__b", tmp_path / "file")
    assert "--save-to" in refused.value.hint
