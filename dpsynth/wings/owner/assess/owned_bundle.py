"""A finished bundle in its owner's hands: public facts from its manifest, and the key in its journal.

Invariant: nothing here is written, and an error names files and columns alone.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from pathlib import Path
from typing import cast

from pydantic import TypeAdapter, ValidationError

from dpsynth.accounting.neighbours import Nameless, Neighbours, Relation, neighbours_in_words
from dpsynth.bundle import MANIFEST
from dpsynth.columns.column import Column
from dpsynth.columns.domain import Clique
from dpsynth.columns.slices import Slice
from dpsynth.config.files import FileForm
from dpsynth.config.published_columns import UnknownColumn, published_layout
from dpsynth.curator import Journal
from dpsynth.errors import ConfigError, DpsynthError

PAGE = "utility.html"
"""The page of an evaluation, in the folder ``private``."""


@dataclass(frozen=True, eq=False)
class OwnedBundle:
    """A bundle with both of its folders.

    Attributes:
        public: the folder that is handed over: ``public``, or that of an audience.
        private: the folder for what is the owner's alone; that of an audience, inside of the release's.
        journal: the journal of the release.
        manifest: the manifest's JSON values.
        columns: the columns that were read from the private table.
    """

    public: Path
    private: Path
    journal: Path
    manifest: Mapping[str, object]
    columns: tuple[Column, ...]

    @staticmethod
    def at(folder: Path) -> OwnedBundle:
        """The bundle in a folder: that of a release, or of one audience inside of it.

        Raises:
            ConfigError: the folder holds no finished bundle with its private half, or that of a rehearsal.
        """
        whole = not (folder / MANIFEST).is_file()
        public, owner = (folder / "public", folder) if whole else (folder, folder.parent)
        try:
            text = (public / MANIFEST).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError):
            raise ConfigError(
                f"{folder} is no bundle: it has no public/{MANIFEST}. Name the folder that dpsynth run "
                "printed last, which holds public/ and private/, or the folder of an audience inside of it."
            ) from None
        if not (owner / "private").is_dir():
            raise ConfigError(
                f"{folder} has no folder private/, so there is no place for an evaluation. Name the "
                "owner's own bundle, where the release ran."
            )
        try:
            manifest = json.loads(text)
            # The grammar takes decimals.
            described = json.loads(text, parse_float=Decimal)["columns"]
            unfit = not (isinstance(described, list) and all(isinstance(facts, dict) for facts in described))
        except (ValueError, KeyError, TypeError):
            unfit = True
        if unfit:
            raise ConfigError(f"{public / MANIFEST} is no manifest of a bundle: it is damaged.")
        if manifest.get("rehearsal") is True:
            raise ConfigError(
                f"{folder} is a rehearsal: its table was made up, and says nothing of a real one. Name the "
                "bundle of a release."
            )
        try:
            columns = published_layout(described).columns
        except UnknownColumn as error:
            raise ConfigError(
                f"The manifest of {folder} {error}. Use the version of dpsynth that it names under software."
            ) from None
        audience = manifest.get("audience")
        kept = owner / "private"
        private = kept if audience is None else kept / public.name
        return OwnedBundle(public, private, kept / "journal.jsonl", manifest, columns)

    @property
    def part(self) -> Slice | None:
        """The slice of the table that the release is about."""
        found = self.manifest.get("period")
        return Slice.from_json(cast(Mapping[str, object], found)) if isinstance(found, Mapping) else None

    @property
    def form(self) -> FileForm | None:
        """The form of the private table's file; None if it was no file.

        Raises:
            ConfigError: the manifest is damaged.
        """
        found = self.manifest.get("source")
        if not isinstance(found, Mapping):
            return None
        try:
            return TypeAdapter(FileForm).validate_python(found)
        except ValidationError:
            raise ConfigError(f"{self.public / MANIFEST}: source is no form of a file.") from None

    @cached_property
    def neighbours(self) -> Neighbours:
        """The neighbour relation and the unit, with the contribution bound."""
        promise = cast(Mapping[str, object], self.manifest["guarantee"])
        nameless: Nameless = "together" if promise.get("rows_without_id") == "together" else "left_out"
        return neighbours_in_words(cast(Relation, promise["neighbours"]), str(promise["unit"]), nameless)

    @property
    def cliques(self) -> tuple[Clique, ...]:
        """The sets of columns that were measured together."""
        structure = cast(Mapping[str, list[list[str]]], self.manifest["structure"])
        lost = [tuple(clique) for clique in structure["lost"]]
        return tuple(tuple(clique) for clique in structure["cliques"] if tuple(clique) not in lost)

    @property
    def rules(self) -> tuple[str, ...]:
        """The constraints, as they were written."""
        constraints = cast(Mapping[str, list[Mapping[str, object]]], self.manifest["constraints"])
        return tuple(str(way["rule"]) for way in constraints["rules"])

    def key(self) -> bytes:
        """The secret that decided which rows of a person were kept; a new one where the journal is gone."""
        try:
            journal = Journal.open(self.journal)
        except (OSError, DpsynthError):
            return secrets.token_bytes(32)
        journal.close()
        return bytes.fromhex(str(journal.header["key"]))
