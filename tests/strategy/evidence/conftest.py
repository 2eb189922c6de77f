"""The small publication of ``tests.bundle``, which an earlier release may have written."""

from tests.bundle.conftest import merged, publication, rows, written

__all__ = ["merged", "publication", "rows", "written"]
