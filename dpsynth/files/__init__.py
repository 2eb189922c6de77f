"""Table files: their forms, their bytes and their headers, but never their rows."""

from dpsynth.files.form import FileForm, Kind

__all__ = ["FileForm", "Kind"]
