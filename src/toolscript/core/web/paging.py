"""How lists come in pages over HTTP, and how one entry is named."""

from typing import Annotated

from fastapi import Path, Query
from pydantic import Field

from toolscript.model.items import LARGEST_ID

MOST = 200
USUAL = 50

Time = Annotated[str, Field(json_schema_extra={"format": "date-time"})]
NumberInPath = Annotated[int, Path(ge=1, le=LARGEST_ID, description="Its number.")]
AfterNumber = Annotated[int, Query(ge=0, le=LARGEST_ID, description="`next` of the page before.")]
Limit = Annotated[int, Query(ge=1, le=MOST, description="Most entries of the page.")]
