"""Keys of the configuration that a wing reads: the core knows their names, and the wing their grammar.

Invariant: a wing is imported only where its key is given, or where the grammar as a whole is described.
"""

from __future__ import annotations

from functools import cached_property

from pydantic import (
    GetJsonSchemaHandler,
    TypeAdapter,
    ValidationError,
)
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from dpsynth.columns.section import NESTED, Checked, JsonSchema, refused
from dpsynth.wing import Point


class OfWing(Checked):
    """An annotation for a field whose type a wing defines."""

    def __init__(self, key: str, *, without: type | None = None, optional: bool = False) -> None:
        """The annotation of a key.

        Args:
            key: its path, such as "publish.rounding": the name of the point that the wing fills with a type.
            without: the type where no wing fills the point; None: the key is then refused.
            optional: True if the key may be there without a value.
        """
        self._point: Point[type] = Point(key)
        self._without, self._optional = without, optional

    @cached_property
    def _adapter(self) -> TypeAdapter[object] | None:
        kind = self._point.filled() or self._without
        return None if kind is None else TypeAdapter(kind)

    def check(self, value: object) -> object:
        """The value as the wing's type has it."""
        if value is None and self._optional:
            return None
        if self._adapter is None:
            raise refused("needs a wing that is not installed here; remove it")
        try:
            return self._adapter.validate_python(value)
        except ValidationError as error:
            details = error.errors(include_url=False, include_input=False)
            raise PydanticCustomError(NESTED, "{errors}", {"errors": details}) from None

    def json_schema(self) -> JsonSchema:
        """Anything: for a wing that is not installed."""
        return {}

    def __get_pydantic_json_schema__(self, core: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchema:
        """The description of the wing's type."""
        if self._adapter is None:
            return {}
        if self._optional:
            return {"anyOf": [handler(self._adapter.core_schema), {"type": "null"}]}
        # Inside of another schema the type is described under its own name, like that of a key of the core.
        return handler(core_schema.with_default_schema(self._adapter.core_schema))
