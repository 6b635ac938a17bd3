"""The catalog in PostgreSQL: items, skills, assignments, the dirty set and jobs."""
