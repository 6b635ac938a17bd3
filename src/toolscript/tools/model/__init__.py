"""Values of tool search: queries, answers, the catalog, skills and centroids."""
