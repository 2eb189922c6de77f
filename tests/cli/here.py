"""The command in this process, in a folder of a test's own."""

import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from dpsynth.cli import app


@dataclass(frozen=True)
class Ended:
    """How a command ended: its exit code, and what it wrote."""

    code: int
    out: str
    err: str


class Command:
    """``dpsynth`` in a working directory, as often as a test likes."""

    def __init__(
        self, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        """Go to the folder; neither --debug nor a server of Prefect's is left over from elsewhere."""
        self.folder, self._monkeypatch, self._capsys = folder, monkeypatch, capsys
        monkeypatch.chdir(folder)
        monkeypatch.setenv("DPSYNTH_DEBUG", "")
        monkeypatch.setenv("PREFECT_API_URL", "")

    def __call__(self, *arguments: str | Path) -> Ended:
        """Run it to its end."""
        self._capsys.readouterr()
        self._monkeypatch.setattr(sys, "argv", ["dpsynth", *map(str, arguments)])
        with pytest.raises(SystemExit) as stopped:
            app.main()
        said = self._capsys.readouterr()
        code = stopped.value.code
        return Ended(0 if code is None else int(code), said.out, said.err)

    @property
    def files(self) -> dict[str, int]:
        """Every file and folder, with its size."""
        return {
            path.relative_to(self.folder).as_posix(): path.lstat().st_size * path.is_file()
            for path in sorted(self.folder.rglob("*"))
        }
