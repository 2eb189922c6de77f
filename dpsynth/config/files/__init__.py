"""Table files: their forms, their bytes and their headers, but never their rows."""

from dpsynth.config.files.form import FileForm, Kind

__all__ = ["FileForm", "Kind"]
