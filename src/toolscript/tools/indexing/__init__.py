"""How the indexes follow the catalog: points, versions, the worker and the doctor."""
