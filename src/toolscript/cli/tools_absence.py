"""Why one tool was not found, and what a person at the command line can do about it."""

from toolscript.cli.tables import printable
from toolscript.cli.tools_text import standing_lines
from toolscript.model.results import Absence, AbsenceReason

# The service speaks of its parameters; here they are options.
OPTIONS = {
    "`tool_threshold`": "`--threshold`",
    "`skill_threshold`": "`--skill-threshold`",
    "`skill_limit`": "`--skill-limit`",
    "`limit`": "`--limit`",
    "`direct`": "`--strategy direct`",
    "`hybrid`": "`--strategy hybrid`",
}


def absence_text(absence: Absence) -> str:
    found = absence.reason is AbsenceReason.RETURNED
    head = f"{absence.name or absence.about}: {'found' if found else absence.reason.replace('_', ' ')}"
    lines = [_with_options(absence.message)]
    if absence.others:
        what = "others of this name" if absence.name else "the nearest names"
        lines.append(f"{what}: {', '.join(absence.others)}")
    if absence.score is not None:
        lines.append(f"score {absence.score:.3f}")
    if absence.explanation is not None:
        lines += standing_lines(absence.explanation)
        lines.append(f"skills: {', '.join(absence.skill_ids) or 'none'}")
    return "\n".join([printable(head), *(f"  {printable(line)}" for line in lines)])


def _with_options(message: str) -> str:
    for parameter, option in OPTIONS.items():
        message = message.replace(parameter, option)
    return message
