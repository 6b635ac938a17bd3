"""Documents in files and folders: what is read, what is left out and why, and how reading resumes."""

import io
import json
import os
import time
from pathlib import Path

import pytest

from toolscript.core.errors import InvalidRequest, NotFound
from toolscript.documents.client import files as document_files
from toolscript.documents.client.files import DocumentFiles, Found, FoundDocument, LeftOut
from toolscript.documents.model.document import Document

pytestmark = pytest.mark.requirement("DOC-006")


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(name: str, content: str | bytes) -> Path:
    path = Path(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def lines(*ids: str) -> str:
    return "".join(json.dumps({"id": id_, "text": f"text of {id_}"}) + "\n" for id_ in ids)


def read(*paths: str, **more: object) -> list[Found]:
    return list(DocumentFiles(paths, **more).read())  # type: ignore[arg-type]


def documents(items: list[Found]) -> list[Document]:
    return [item.document for item in items if isinstance(item, FoundDocument)]


def ids(items: list[Found]) -> list[str]:
    return [document.id for document in documents(items)]


def left_out(items: list[Found]) -> dict[str, str]:
    return {item.where: item.reason for item in items if isinstance(item, LeftOut)}


class TestTexts:
    def test_a_text_file_is_a_document_named_by_its_path(self) -> None:
        write("notes/my-first_note.txt", "# no heading here\nHello.")
        assert documents(read("notes/my-first_note.txt")) == [
            Document(
                "notes/my-first_note.txt",
                "# no heading here\nHello.",
                {"path": "notes/my-first_note.txt", "title": "my first note"},
            )
        ]

    def test_the_title_of_markdown_is_its_first_heading(self) -> None:
        write("a.md", "some words\n\n## The *heading* ##\n\n# Another\n")
        write("b.md", "no heading, and #no space")
        assert [document.title for document in documents(read("a.md", "b.md"))] == ["The *heading*", "b"]

    def test_a_file_passed_as_the_path_is_read_whatever_its_name(self) -> None:
        write("README", "Hello.")
        assert ids(read("README")) == ["README"]

    def test_a_byte_order_mark_is_no_text(self) -> None:
        write("a.txt", b"\xef\xbb\xbfHello")
        assert documents(read("a.txt"))[0].text == "Hello"

    @pytest.mark.parametrize(
        ("content", "reason"),
        [
            (b"\x89PNG\r\n\0\0", "is not UTF-8 text"),
            ("Grüße".encode("utf-16"), "is not UTF-8 text"),
            ("Grüße".encode("latin-1"), "is not UTF-8 text"),
            (b"", "is blank"),
            (b" \n\t", "is blank"),
            (b"x" * 1_000_001, "text is longer than 1000000 characters"),
            ("ü".encode() * 2_000_001, "is larger than 4,000,000 bytes"),
        ],
    )
    def test_a_file_that_is_not_text_is_left_out_with_a_reason(self, content: bytes, reason: str) -> None:
        write("good.txt", "Hello.")
        write("odd.txt", content)
        items = read(".")
        assert ids(items) == ["good.txt"]
        assert left_out(items) == {"odd.txt": reason}


class TestFolders:
    def test_all_below_is_read_in_order_and_hidden_things_are_not(self) -> None:
        for name in ("b/z.txt", "b/a.md", "a.txt", "c.jsonl", ".git/x.txt", "b/.hidden.txt", "B.markdown"):
            write(name, lines("line") if name.endswith("jsonl") else "Hello.")
        assert ids(read(".")) == ["B.markdown", "a.txt", "b/a.md", "b/z.txt", "line"]
        assert ids(read("b")) == ["b/a.md", "b/z.txt"]

    def test_other_files_are_left_out_with_a_reason(self) -> None:
        write("a.txt", "Hello.")
        write("b.pdf", "%PDF")
        assert left_out(read(".")) == {"b.pdf": "is none of .txt, .md, .markdown, .jsonl, .ndjson"}

    def test_a_file_outside_the_folder_is_named_from_its_own_folder(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        write("docs/deep/a.txt", "Hello.")
        (tmp_path / "elsewhere").mkdir()
        monkeypatch.chdir(tmp_path / "elsewhere")
        assert ids(read("../docs")) == ["docs/deep/a.txt"]
        assert ids(read(str(tmp_path / "docs/deep"))) == ["deep/a.txt"]
        assert ids(read("../docs/deep/a.txt")) == ["a.txt"]

    def test_two_that_would_have_one_name_are_refused_before_anything_is_read(self, tmp_path: Path) -> None:
        write("one/docs/a.txt", "1")
        write("two/docs/a.txt", "2")
        (tmp_path / "here").mkdir()
        os.chdir("here")
        with pytest.raises(InvalidRequest, match="'docs' would be the name of two"):
            read("../one/docs", "../two/docs")

    def test_a_link_to_a_folder_is_not_followed_and_one_to_a_file_is(self) -> None:
        write("a.txt", "Hello.")
        Path("loop").symlink_to(".")
        Path("b.txt").symlink_to("a.txt")
        Path("broken.txt").symlink_to("nowhere")
        items = read(".")
        assert ids(items) == ["a.txt", "b.txt"]
        assert left_out(items)["broken.txt"] == "is not a file"

    def test_an_unreadable_file_is_skipped_with_a_reason(self) -> None:
        """`/proc/self/mem` cannot be read from its beginning."""
        for name in ("a.txt", "b.jsonl"):
            Path(name).symlink_to("/proc/self/mem")
        write("good.txt", "Hello.")
        items = read(".")
        assert ids(items) == ["good.txt"]
        assert left_out(items) == dict.fromkeys(("a.txt", "b.jsonl"), "cannot be read: Input/output error")
        assert DocumentFiles(["."]).count() == 3

    def test_a_name_that_is_not_utf_8_is_left_out(self) -> None:
        write(os.fsdecode(b"caf\xe9.txt"), "Hello.")
        write("good.txt", "Hello.")
        items = read(".")
        assert ids(items) == ["good.txt"]
        assert list(left_out(items).values()) == ["id must be printable"]

    def test_endlessly_nested_folders_end(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(document_files, "MAX_DEPTH", 3)
        write("a/b/c/d/e.txt", "Hello.")
        write("a/b/f.txt", "Hello.")
        items = read(".")
        assert ids(items) == ["a/b/f.txt"]
        assert left_out(items) == {"a/b/c": "more than 3 folders deep"}

    def test_a_missing_path_is_reported_at_once(self) -> None:
        write("a.txt", "Hello.")
        with pytest.raises(NotFound, match=r"there is no b\.txt"):
            DocumentFiles(["a.txt", "b.txt"])


class TestLines:
    def test_a_bad_line_is_refused_with_its_number_and_hides_no_other(self) -> None:
        write("a.jsonl", lines("one") + '{"id": 7}\n\n{nonsense\n' + lines("two").rstrip("\n"))
        items = read("a.jsonl")
        assert ids(items) == ["one", "two"]
        assert list(left_out(items)) == ["a.jsonl line 2", "a.jsonl line 4"]
        assert all(item.refused for item in items if isinstance(item, LeftOut))

    def test_a_line_that_is_too_long_is_refused_and_not_held(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(document_files, "MAX_LINE", 100)
        write("a.jsonl", lines("one") + json.dumps({"id": "long", "text": "x" * 1000}) + "\n" + lines("two"))
        items = read("a.jsonl")
        assert ids(items) == ["one", "two"]
        assert list(left_out(items)) == ["a.jsonl line 2"]

    def test_lines_may_come_from_stdin(self) -> None:
        stdin = io.BytesIO(lines("one", "two").encode() + b"{\n")
        items = read("-", stdin=stdin)
        assert ids(items) == ["one", "two"]
        assert list(left_out(items)) == ["stdin line 3"]


def test_the_number_of_documents_is_known_except_for_stdin() -> None:
    write("a/a.txt", "Hello.")
    write("a/b.pdf", "Hello.")
    write("c.jsonl", lines("one", "two", "three").rstrip("\n"))
    write("empty.jsonl", "")
    assert DocumentFiles(["a", "c.jsonl", "empty.jsonl"]).count() == 4
    assert DocumentFiles(["a", "-"]).count() is None


class TestResuming:
    """From every place, exactly the rest is read."""

    PATHS = ("a", "b.jsonl", "c.txt")

    @pytest.fixture(autouse=True)
    def files(self) -> None:
        for name in ("a/1.txt", "a/2/x.md", "a/2.txt", "a/3.jsonl"):
            write(name, lines("l1", "l2", "l3") if name.endswith("jsonl") else "Hello.")
        write("a/4.pdf", "")
        write("b.jsonl", lines("m1", "m2") + "\n{\n" + lines("m3"))
        write("c.txt", "Hello.")

    def test_after_each_place_the_rest_is_read(self) -> None:
        began_at = time.time() + 10
        whole = read(*self.PATHS)
        assert len(whole) == 12
        for number, item in enumerate(whole, 1):
            assert read(*self.PATHS, after=item.place, began_at=began_at) == whole[number:]

    def test_files_changed_since_the_start_are_read_again(self) -> None:
        last = read(*self.PATHS)[-1].place
        began_at = time.time() + 10
        assert read(*self.PATHS, after=last, began_at=began_at) == []
        os.utime("a/1.txt", (began_at + 1, began_at + 1))
        os.utime("a/3.jsonl", (began_at + 1, began_at + 1))
        write("a/0-new.txt", "Hello.")
        os.utime("a/0-new.txt", (began_at + 1, began_at + 1))
        assert ids(read(*self.PATHS, after=last, began_at=began_at)) == [
            "a/0-new.txt",
            "a/1.txt",
            "l1",
            "l2",
            "l3",
        ]

    def test_a_removed_file_is_no_error(self) -> None:
        place = read(*self.PATHS)[3].place
        Path("a/2.txt").unlink()
        Path("a/2/x.md").unlink()
        assert ids(read(*self.PATHS, after=place, began_at=time.time() + 10))[-1] == "c.txt"
