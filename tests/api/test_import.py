"""`import dpsynth` stays quick: what takes long is imported when it is used."""

import subprocess
import sys

HEAVY = ("numpy", "pandas", "pyarrow", "pydantic", "sklearn", "sqlalchemy", "yaml", "prefect", "dpsynth.api")


def loaded_by(code: str) -> set[str]:
    """The heavy modules that a program has loaded at its end."""
    program = f"import sys\n{code}\nprint(*(name for name in {HEAVY!r} if name in sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60
    )
    return set(done.stdout.split())


def test_importing_dpsynth_imports_nothing_heavy() -> None:
    assert loaded_by("import dpsynth; dir(dpsynth); dpsynth.release, dpsynth.load") == set()


def test_a_spec_needs_no_scikit_learn_and_an_estimator_does() -> None:
    spec = "import dpsynth; dpsynth.Spec; assert not {'sklearn', 'pandas', 'prefect'} & set(sys.modules)"
    assert {"pydantic", "sklearn"} <= loaded_by(f"{spec}; dpsynth.Synthesizer")


def test_every_public_name_is_there() -> None:
    import dpsynth

    assert all(getattr(dpsynth, name) is not None for name in dpsynth.__all__)


def test_dir_shows_public_names_and_no_module_that_was_imported_on_the_way() -> None:
    import dpsynth

    assert dir(dpsynth) == sorted(dpsynth.__all__)
    assert {"release", "check", "evaluate"} <= set(dir(dpsynth)) and "Path" not in dir(dpsynth)
