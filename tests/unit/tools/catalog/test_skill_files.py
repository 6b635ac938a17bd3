"""Skills in files: what is written can be read, and what cannot be is refused by name."""

from pathlib import Path

import pytest

from toolscript.core.errors import InvalidRequest, NotFound
from toolscript.core.taxonomy import Skill
from toolscript.tools.skills import importing
from toolscript.tools.skills.importing import read_skills, write_skills

pytestmark = pytest.mark.requirement("SK-001")


@pytest.mark.parametrize("count", [0, 1, 3])
def test_what_is_written_is_read_again_a_skill_on_each_line(tmp_path: Path, count: int) -> None:
    skills = [Skill(f"skill_{number}", "Name ☃ \u2028", keywords=("one", "two")) for number in range(count)]
    skills = [Skill(skill.id, skill.name.strip(), keywords=skill.keywords) for skill in skills]
    file = tmp_path / "skills.json"
    write_skills(file, skills)
    assert read_skills(file) == skills
    assert sum(b'"id"' in line for line in file.read_bytes().split(b"\n")) == count


def test_a_file_that_is_not_there_or_no_text_is_refused_by_name(tmp_path: Path) -> None:
    file = tmp_path / "skills.json"
    with pytest.raises(NotFound, match=r"cannot read .*skills\.json"):
        read_skills(file)
    file.write_bytes(b"\xff\xfe[]")
    with pytest.raises(InvalidRequest, match="not text in UTF-8"):
        read_skills(file)
    with pytest.raises(InvalidRequest, match="cannot write"):
        write_skills(tmp_path / "no" / "folder.json", [])


def test_a_file_without_end_is_not_read_to_its_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importing, "MAX_BYTES", 10)
    file = tmp_path / "skills.json"
    file.write_bytes(b" " * 11)
    with pytest.raises(InvalidRequest, match="larger than"):
        read_skills(file)
