"""The configurations of ``tests.config``, to plan releases of."""

from tests.config.conftest import load_column, load_text, load_with

__all__ = ["load_column", "load_text", "load_with"]
