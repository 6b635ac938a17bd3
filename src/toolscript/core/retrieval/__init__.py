"""Retrieval: ports, queries, fusion, reranking, deadlines and fallbacks. It knows no engine."""
