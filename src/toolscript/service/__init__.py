"""The service, deployable 2: wires adapters to the core. One function per command, loaded when it is run."""

from typing import TYPE_CHECKING

from toolscript.late_names import late_names

if TYPE_CHECKING:
    from toolscript.service.asking import find_skills, find_tools
    from toolscript.service.bench_documents import bench_documents
    from toolscript.service.bench_index import bench_index
    from toolscript.service.bench_knowledge import bench_knowledge
    from toolscript.service.bench_load import bench_load, bench_sustained
    from toolscript.service.bench_search import bench_search
    from toolscript.service.catalog_contents import (
        find_item,
        find_item_source,
        list_item_sources,
        list_items,
        remove_item_source,
        remove_items,
    )
    from toolscript.service.changing import decide_change, find_change, list_changes
    from toolscript.service.demo import serve_demo
    from toolscript.service.document_reindexing import (
        drop_document_version,
        reindex_documents,
        roll_back_documents,
    )
    from toolscript.service.documents_asking import (
        find_documents,
        put_documents,
        remove_documents,
        show_document,
    )
    from toolscript.service.evaluating import evaluate
    from toolscript.service.evaluating_documents import evaluate_documents
    from toolscript.service.index_overview import list_indexes
    from toolscript.service.ingesting import ingest, watch_ingest
    from toolscript.service.library_contents import (
        find_in_library,
        list_library,
        remove_from_library,
    )
    from toolscript.service.library_reindexing import reindex_library
    from toolscript.service.serving import serve
    from toolscript.service.skills import export_skills, import_skills, open_skills, rebuild_skills, reclassify
    from toolscript.service.syncing import sync_file, sync_servers, watch_servers
    from toolscript.service.tenants import (
        erase_tenant,
        export_tenant,
        list_tenants,
        make_tenant_keys,
        move_tenant,
        tenant_token,
    )
    from toolscript.service.writing import doctor, drain, migrate, reindex, schema_status, work

__all__ = [
    "bench_documents",
    "bench_index",
    "bench_knowledge",
    "bench_load",
    "bench_search",
    "bench_sustained",
    "decide_change",
    "doctor",
    "drain",
    "drop_document_version",
    "erase_tenant",
    "evaluate",
    "evaluate_documents",
    "export_skills",
    "export_tenant",
    "find_change",
    "find_documents",
    "find_in_library",
    "find_item",
    "find_item_source",
    "find_skills",
    "find_tools",
    "import_skills",
    "ingest",
    "list_changes",
    "list_indexes",
    "list_item_sources",
    "list_items",
    "list_library",
    "list_tenants",
    "make_tenant_keys",
    "migrate",
    "move_tenant",
    "open_skills",
    "put_documents",
    "rebuild_skills",
    "reclassify",
    "reindex",
    "reindex_documents",
    "reindex_library",
    "remove_documents",
    "remove_from_library",
    "remove_item_source",
    "remove_items",
    "roll_back_documents",
    "schema_status",
    "serve",
    "serve_demo",
    "show_document",
    "sync_file",
    "sync_servers",
    "tenant_token",
    "watch_ingest",
    "watch_servers",
    "work",
]

_HOMES = {
    "find_item": "catalog_contents",
    "find_item_source": "catalog_contents",
    "list_item_sources": "catalog_contents",
    "list_items": "catalog_contents",
    "remove_item_source": "catalog_contents",
    "remove_items": "catalog_contents",
    "find_in_library": "library_contents",
    "list_library": "library_contents",
    "remove_from_library": "library_contents",
    "bench_documents": "bench_documents",
    "bench_knowledge": "bench_knowledge",
    "bench_index": "bench_index",
    "bench_load": "bench_load",
    "bench_search": "bench_search",
    "bench_sustained": "bench_load",
    "decide_change": "changing",
    "doctor": "writing",
    "list_indexes": "index_overview",
    "drain": "writing",
    "drop_document_version": "document_reindexing",
    "erase_tenant": "tenants",
    "evaluate": "evaluating",
    "evaluate_documents": "evaluating_documents",
    "export_skills": "skills",
    "export_tenant": "tenants",
    "find_change": "changing",
    "find_documents": "documents_asking",
    "find_skills": "asking",
    "find_tools": "asking",
    "import_skills": "skills",
    "ingest": "ingesting",
    "list_changes": "changing",
    "list_tenants": "tenants",
    "make_tenant_keys": "tenants",
    "migrate": "writing",
    "move_tenant": "tenants",
    "open_skills": "skills",
    "put_documents": "documents_asking",
    "rebuild_skills": "skills",
    "reclassify": "skills",
    "reindex": "writing",
    "reindex_documents": "document_reindexing",
    "reindex_library": "library_reindexing",
    "remove_documents": "documents_asking",
    "schema_status": "writing",
    "roll_back_documents": "document_reindexing",
    "serve": "serving",
    "serve_demo": "demo",
    "show_document": "documents_asking",
    "sync_file": "syncing",
    "sync_servers": "syncing",
    "tenant_token": "tenants",
    "watch_ingest": "ingesting",
    "watch_servers": "syncing",
    "work": "writing",
}

__getattr__ = late_names(__name__, _HOMES)
