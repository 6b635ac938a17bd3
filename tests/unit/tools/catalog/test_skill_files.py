"""Skills in files: written files can be read, and invalid files are refused by name."""

from pathlib import Path

import pytest

from toolscript.core.errors import InvalidRequest, NotFound
from toolscript.core.taxonomy import Skill
from toolscript.tools.skills import importing
from toolscript.tools.skills.importing import read_skills, write_skills

pytestmark = pytest.mark.requirement("SK-001")


@pytest.mark.parametrize("count", [0, 1, 3])
def test_written_skills_are_read_back_with_one_skill_per_line(tmp_path: Path, count: int) -> None:
    skills = [Skill(f"skill_{number}", "Name ☃ \u2028", keywords=("one", "two")) for number in range(count)]
    skills = [Skill(skill.id, skill.name.strip(), keywords=skill.keywords) for skill in skills]
    file = tmp_path / "skills.json"
    write_skills(file, skills)
    assert read_skills(file) == skills
    assert sum(b'"id"' in line for line in file.read_bytes().split(b"\n")) == count


def test_a_missing_or_binary_file_is_refused_by_name(tmp_path: Path) -> None:
    file = tmp_path / "skills.json"
    with pytest.raises(NotFound, match=r"cannot read .*skills\.json"):
        read_skills(file)
    file.write_bytes(b"\xff\xfe[]")
    with pytest.raises(InvalidRequest, match="not UTF-8 text"):
        read_skills(file)
    with pytest.raises(InvalidRequest, match="cannot write"):
        write_skills(tmp_path / "no" / "folder.json", [])


def test_a_file_over_the_size_limit_is_not_read_to_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importing, "MAX_BYTES", 10)
    file = tmp_path / "skills.json"
    file.write_bytes(b" " * 11)
    with pytest.raises(InvalidRequest, match="larger than"):
        read_skills(file)
