"""Values of document search: documents, filters, queries, answers and points."""
