"""READ: from a query to ranked, explained, enriched results. What is the best answer?"""
