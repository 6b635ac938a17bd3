"""All documents of a tenant, one after the other."""

from collections.abc import AsyncIterator

from toolscript.model.documents import DocumentKey, StoredDocument
from toolscript.model.filters import NO_FILTERS
from toolscript.ports import TenantDocuments
from toolscript.sync.documents import stored_document

PAGE = 100


async def exported(shelf: TenantDocuments, after: DocumentKey = "") -> AsyncIterator[StoredDocument]:
    """In the order of their keys, from the one after `after`; what is put meanwhile may come or not."""
    while True:
        headers = await shelf.page(after, PAGE, NO_FILTERS)
        for header in headers:
            document = await stored_document(shelf, header)
            if document.passages:
                yield document
        if len(headers) < PAGE:
            return
        after = headers[-1].key
