"""The small publication of ``tests.publish``, which an earlier release may have written."""

from tests.publish.conftest import merged, publication, rows, written

__all__ = ["merged", "publication", "rows", "written"]
