"""Clients of a service or gateway that runs elsewhere, over `/api/v1`, for threads and for asyncio."""
