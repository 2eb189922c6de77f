"""Table files: their forms, their bytes and their headers, but never their rows."""

from dpsynth.files.form import FileForm, Kind
from dpsynth.files.header import header_of, missing_columns

__all__ = ["FileForm", "Kind", "header_of", "missing_columns"]
