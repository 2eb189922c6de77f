"""The pages say what is there: rooms, proofs, API pages, and a site that builds and asks no other host."""

import importlib
import json
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from dpsynth.cli.app import app
from dpsynth.wing import LISTED

REPOSITORY = Path(__file__).parents[1]

pytestmark = pytest.mark.skipif(
    not (REPOSITORY / "mkdocs.yml").is_file(), reason="the pages are those of a checkout"
)

ARCHITECTURE = REPOSITORY / "docs" / "architecture.md"
DESIGN = REPOSITORY / "docs" / "design.md"
ROOM = re.compile(r"^\| (\d+) \| `(\w+)` \| \S", re.MULTILINE)
AUDITING = REPOSITORY / "docs" / "auditing.md"
PROOF = re.compile(
    r"^\| [^|]+ \| ((?:`dpsynth[\w.]+`(?:, )?)+) \| `(tests/[\w/]+\.py)::(test_\w+)` \|"
    r" (?:`(tests/[\w/]+\.py)::(test_\w+)` |`dpsynth [^`]+` |)\|$",
    re.MULTILINE,
)


def section(title: str) -> str:
    """A section of the architecture page, without its own title."""
    return ARCHITECTURE.read_text(encoding="utf-8").split(f"\n## {title}\n")[1].split("\n## ")[0]


def contracts() -> list[dict[str, Any]]:
    """The import contracts."""
    settings = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))
    return settings["tool"]["importlinter"]["contracts"]


def layers() -> list[set[str]]:
    """The rooms by layer, from the top down, as the import contracts have them."""
    (layered,) = (c["layers"] for c in contracts() if "through the rooms" in c["name"])
    return [{room.strip().removeprefix("dpsynth.") for room in layer.split("|")} for layer in layered]


def rooms() -> set[str]:
    """The packages and modules of dpsynth, and flows."""
    found = {
        p.stem
        for p in (REPOSITORY / "dpsynth").iterdir()
        if p.suffix == ".py" or (p / "__init__.py").is_file()
    }
    return found - {"__init__"} | {"flows"}


def told(text: str) -> list[set[str]]:
    """The rooms by layer, as a table has them."""
    numbered = [(int(number), room) for number, room in ROOM.findall(text)]
    assert numbered == sorted(numbered, key=lambda row: row[0]), "layers stand in their order"
    return [{room for n, room in numbered if n == layer} for layer in sorted({n for n, _ in numbered})]


def claims() -> str:
    """The page for auditors, without its hazards, which are written in another way."""
    return AUDITING.read_text(encoding="utf-8").split("\n## Hazards\n")[0]


def absent(text: str) -> list[str]:
    """Names in a page of claims that stand for nothing: no docstring, or no such test or planted fault."""
    missing = []
    for arguments, test_file, test_name, fault_file, fault in PROOF.findall(text):
        missing += [name for name in re.findall(r"`([\w.]+)`", arguments) if not documented(name)]
        for file, test in ((test_file, test_name), (fault_file, fault)):
            path = REPOSITORY / file
            if file and (not path.is_file() or f"def {test}(" not in path.read_text(encoding="utf-8")):
                missing.append(f"{file}::{test}")
    return missing


def documented(name: str) -> bool:
    """True if a dotted name is that of a module, class or function with a docstring."""
    parts = name.split(".")
    for cut in range(len(parts), 0, -1):
        try:
            found = importlib.import_module(".".join(parts[:cut]))
        except ModuleNotFoundError:
            continue
        for part in parts[cut:]:
            found = getattr(found, part, None)
        return bool(getattr(found, "__doc__", None))
    return False


def test_the_table_of_rooms_is_that_of_the_import_contracts_and_of_the_folders() -> None:
    table = told(section("The rooms"))
    assert table == layers()
    assert set().union(*table) == rooms()


def test_the_table_of_wings_is_their_listing_and_that_of_the_folders() -> None:
    named = re.findall(r"^\| `(\w+)` \| ", section("The rooms"), re.MULTILINE)
    folders = (REPOSITORY / "dpsynth" / "wings").glob("*/__init__.py")
    assert tuple(named) == LISTED and set(named) == {path.parent.name for path in folders}


def test_a_room_that_the_table_leaves_out_or_moves_is_caught() -> None:
    text = section("The rooms")
    swapped = {"`config`": "`rules`", "`rules`": "`config`"}
    assert told(re.sub("`config`|`rules`", lambda room: swapped[room[0]], text)) != layers()
    assert set().union(*told(re.sub(r"\| \d+ \| `errors`.*\n", "", text))) != rooms()


def test_every_argument_test_and_planted_fault_of_the_page_for_auditors_exists() -> None:
    rows = [line for line in claims().splitlines() if "::test_" in line]
    found = PROOF.findall(claims())
    assert len(found) == len(rows) >= 90, "a row is written in another way"
    assert sum(bool(fault) for *_, fault in found) >= 19
    assert absent(claims()) == []


@pytest.mark.parametrize(
    "name",
    [
        "dpsynth.accounting.measures",
        "test_the_analytic_gaussian_is_its_formula",
        "test_a_choice_that_counts_as_less_would_be_seen",
    ],
)
def test_a_proof_that_is_gone_is_caught(name: str) -> None:
    assert name in claims()
    assert absent(claims().replace(name, name + "_gone"))


HAZARD = re.compile(r"^\| [^|]+ \| `(tests/[\w/]+\.py)::(test_\w+)` \|$", re.MULTILINE)


def slow_or_absent(text: str) -> list[str]:
    """Tests of a table of hazards that don't exist, or that the quick suite leaves out."""
    missing = []
    for file, test in HAZARD.findall(text):
        path = REPOSITORY / file
        code = path.read_text(encoding="utf-8") if path.is_file() else ""
        before, found, _ = code.partition(f"def {test}(")
        marks = before.rpartition("\n\n\n")[2]
        if not found or "mark.slow" in marks or re.search(r"^pytestmark = .*slow", code, re.MULTILINE):
            missing.append(f"{file}::{test}")
    return missing


def test_every_hazard_has_a_test_that_the_quick_suite_runs() -> None:
    page = AUDITING.read_text(encoding="utf-8").split("\n## Hazards\n")[1]
    rows = [line for line in page.splitlines() if "::test_" in line]
    assert len(HAZARD.findall(page)) == len(rows) == 55
    assert slow_or_absent(page) == []


@pytest.mark.parametrize("test", ["test_no_such_test", "test_five_hundred_kills_at_random_instants"])
def test_a_hazard_whose_test_is_gone_or_slow_is_caught(test: str) -> None:
    assert slow_or_absent(f"| A hazard | `tests/release/test_random_kills.py::{test}` |") != []


def test_every_room_has_its_page_of_the_api() -> None:
    pages = {page.stem for page in (REPOSITORY / "docs" / "api").glob("*.md")} - {"dpsynth"}
    assert pages == rooms() - {"__main__"}
    for page in pages:
        text = (REPOSITORY / "docs" / "api" / f"{page}.md").read_text(encoding="utf-8")
        assert f"::: {'' if page == 'flows' else 'dpsynth.'}{page}\n" in text


@pytest.mark.parametrize("page", [ARCHITECTURE, DESIGN], ids=lambda page: page.stem)
def test_every_file_that_a_page_for_contributors_names_exists(page: Path) -> None:
    named = re.findall(r"`((?:dpsynth|flows|tests)/[\w/]+\.py)`", page.read_text(encoding="utf-8"))
    assert len(named) > 10
    assert [file for file in named if not (REPOSITORY / file).is_file()] == []


def test_every_law_names_the_test_or_the_contract_that_holds_it() -> None:
    _, laws = DESIGN.read_text(encoding="utf-8").split("\n## The laws\n")
    sections = laws.split("\n## ")[0].split("\n### ")[1:]
    assert len(sections) == 8
    for law in sections:
        held = law.split("*Held by*")[1]
        assert re.findall(r"`tests/[\w/]+\.py`", held), law
    named = set(re.findall(r'"([A-Z][^"]+)"', " ".join(laws.split())))
    assert len(named) >= 4
    assert named <= {contract["name"] for contract in contracts()}


LINK = re.compile(r"\]\(<?([^)\s>]+)>?\)")
ANYWHERE = re.compile(r"^(?:https?|mailto):")
CODE = re.compile(r"^```.*?^```$|`[^`\n]*`", re.MULTILINE | re.DOTALL)
HEADING = re.compile(r"^#+ +(.+?) *$", re.MULTILINE)
TOP_PAGES = ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")


def pages() -> dict[Path, str]:
    """The Markdown of every page, and that of every notebook."""
    paths = [*(REPOSITORY / "docs").rglob("*.md"), *(REPOSITORY / name for name in TOP_PAGES)]
    texts = {path: path.read_text(encoding="utf-8") for path in paths}
    for path in (REPOSITORY / "docs" / "notebooks").glob("*.ipynb"):
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        texts[path] = "\n\n".join("".join(c["source"]) for c in cells if c["cell_type"] == "markdown")
    return texts


def anchors(text: str) -> set[str]:
    """Names of the parts of a page: its headings, as GitHub and the site make anchors of them."""
    headings = HEADING.findall(re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL))
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def broken(texts: dict[Path, str]) -> list[str]:
    """The links of some pages that lead to no file of the checkout, or to no heading of a page."""
    found = []
    for path, text in texts.items():
        for link in LINK.findall(CODE.sub("", text)):
            if ANYWHERE.match(link):
                continue
            file, _, anchor = link.partition("#")
            there = (path.parent / file).resolve() if file else path
            if not there.exists() or (anchor and anchor not in anchors(texts.get(there, ""))):
                found.append(f"{path.name}: {link}")
    return found


def test_every_key_of_a_configuration_is_on_a_page_and_every_key_of_a_manifest_on_that_of_the_files() -> None:
    config, manifest = (
        json.loads((REPOSITORY / "schemas" / f"{name}.schema.json").read_text(encoding="utf-8"))
        for name in ("dpsynth", "manifest")
    )
    assert len(keys_of(config)) > 100
    assert unmentioned(keys_of(config), " ".join(pages().values())) == []
    files = (REPOSITORY / "docs" / "files.md").read_text(encoding="utf-8")
    assert unmentioned(manifest["properties"], files.split("\n## `manifest.json`\n")[1]) == []


def test_a_key_that_no_page_mentions_is_caught() -> None:
    assert unmentioned({"rows", "rows_a_file"}, "`rows_a_filed` and `rows`") == ["rows_a_file"]


def unmentioned(keys: Iterable[str], text: str) -> list[str]:
    """Keys that a text lacks as whole words."""
    return [key for key in sorted(keys) if not re.search(rf"(?<!\w){re.escape(key)}(?!\w)", text)]


def keys_of(schema: object) -> set[str]:
    """The keys of all objects that a JSON Schema describes."""
    inner = schema.values() if isinstance(schema, dict) else schema if isinstance(schema, list) else ()
    own = schema.get("properties", {}) if isinstance(schema, dict) else {}
    return set(own) | {key for value in inner for key in keys_of(value)}


NAMED = re.compile(r"\b((?:dpsynth|flows|tests|benchmarks)/[\w/]+\.py)\b|-m (benchmarks\.\w+)")


def scripts_that_are_gone(texts: dict[Path, str]) -> list[str]:
    """Files of code that pages name, by path or as a module to run, and that there are not."""
    found = [
        (path.name, file or f"{module.replace('.', '/')}.py")
        for path, text in texts.items()
        for file, module in NAMED.findall(text)
    ]
    assert len(found) > 50
    return [f"{page}: {file}" for page, file in found if not (REPOSITORY / file).is_file()]


def test_every_script_and_test_that_a_page_names_exists() -> None:
    assert scripts_that_are_gone(pages()) == []


def test_a_script_that_is_gone_is_caught() -> None:
    texts = pages()
    page = REPOSITORY / "docs" / "privacy.md"
    for name in ("`tests/no_such_test.py`", "python -m benchmarks.gone"):
        assert len(scripts_that_are_gone({**texts, page: texts[page] + name})) == 1


def in_no_menu(texts: dict[Path, str], menu: str) -> set[str]:
    """Pages that a site's menu leaves out, and those in it that there are not."""
    docs = REPOSITORY / "docs"
    there = {
        path.relative_to(docs).as_posix()
        if path.suffix == ".md" and docs in path.parents
        else f"{path.stem}.md"
        for path in texts
    }
    return there ^ set(re.findall(r"^ +- [^:]+: ([\w/]+\.md)$", menu, re.MULTILINE))


def test_every_link_between_pages_leads_somewhere_and_every_page_is_in_the_menu() -> None:
    texts = pages()
    assert sum(len(LINK.findall(text)) for text in texts.values()) > 50
    assert broken(texts) == []
    assert in_no_menu(texts, (REPOSITORY / "mkdocs.yml").read_text(encoding="utf-8")) == set()


def test_a_link_to_no_page_or_no_heading_and_a_page_in_no_menu_are_caught() -> None:
    texts = pages()
    page = REPOSITORY / "docs" / "privacy.md"
    for link in ("nowhere.md", "ledger.md#no-such-heading", "#no-such-heading"):
        assert broken({**texts, page: f"{texts[page]}\n[A]({link})\n"}) == [f"privacy.md: {link}"]
    menu = (REPOSITORY / "mkdocs.yml").read_text(encoding="utf-8")
    assert in_no_menu(texts, menu.replace("privacy.md", "privately.md")) == {"privacy.md", "privately.md"}


COMMAND = re.compile(r"(?:`|^(?:\$ )?)dpsynth ([a-z]+(?:-[a-z]+)*)([^`#\n]*)", re.MULTILINE)
FORMATS = {"measurements", "row"}
"""Words after the name of the program that are formats of files, in the page on files."""


def unknown(text: str) -> list[str]:
    """Commands and options in the code of a page that the command line doesn't have."""
    group: Any = get_command(app)
    missing = []
    for name, rest in (found for code in CODE.findall(text) for found in COMMAND.findall(code)):
        command: Any = group.get_command(None, name)
        if command is None:
            missing.append(name)
            continue
        within = getattr(command, "commands", {})
        command = within.get(rest.strip().partition(" ")[0], command)
        options = {option for p in command.params for option in (*p.opts, *p.secondary_opts)} | {"--help"}
        missing += [f"{name} {o}" for o in re.findall(r"(?<![\w-])--[a-z][a-z-]*", rest) if o not in options]
    return [word for word in missing if word not in FORMATS]


def test_every_command_and_option_that_a_page_shows_exists() -> None:
    texts = pages()
    assert sum(len(COMMAND.findall(code)) for text in texts.values() for code in CODE.findall(text)) > 150
    assert {path.name: words for path, text in texts.items() if (words := unknown(text))} == {}


def test_a_command_or_an_option_that_is_gone_is_caught() -> None:
    assert (
        unknown("`dpsynth plan CONFIG --detail`, dpsynth gone\n```\n$ dpsynth ledger show --detail\n```")
        == []
    )
    assert unknown("`dpsynth gone`") == ["gone"]
    assert unknown("```\n$ dpsynth ledger show --gone\n```") == ["ledger --gone"]


def test_the_first_sentence_of_every_page_says_for_whom_it_is() -> None:
    for page in (REPOSITORY / "docs").glob("*.md"):
        title, first, *_ = page.read_text(encoding="utf-8").split("\n\n")
        assert title.startswith("# ") and first.startswith("For "), page.name


def built(config: Path, folder: Path) -> subprocess.CompletedProcess[str]:
    """What becomes of a site when it is built as `make docs` builds it."""
    pytest.importorskip("mkdocs", reason="the site is built with the packages of the lock file")
    makefile = (REPOSITORY / "Makefile").read_text(encoding="utf-8")
    (arguments,) = re.findall(r"^\tNO_MKDOCS_2_WARNING=1 \$\(BIN\)/mkdocs (build.*)$", makefile, re.MULTILINE)
    return subprocess.run(
        [sys.executable, "-m", "mkdocs", *arguments.split(), "-f", str(config), "-d", str(folder)],
        cwd=REPOSITORY,
        env=os.environ | {"NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        timeout=300,
    )


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    done = built(REPOSITORY / "mkdocs.yml", folder)
    assert done.returncode == 0, done.stderr
    return folder


@pytest.mark.parametrize(("link", "code"), [("index.md", 0), ("nowhere.md", 1)])
def test_a_link_to_nowhere_is_caught(tmp_path: Path, link: str, code: int) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "index.md").write_text(f"# A\n\n[B]({link})\n", encoding="utf-8")
    config = tmp_path / "mkdocs.yml"
    config.write_text("site_name: a\n", encoding="utf-8")
    assert built(config, tmp_path / "site").returncode == code


FETCHED = re.compile(
    r"""<(?:script|img|iframe|source)\b[^>]*\bsrc=["']?(?:https?:)?//|<link\b[^>]*\bhref=["']?(?:https?:)?//"""
    r"""|url\(["']?(?:https?:)?//|@import\s+["'](?:https?:)?//"""
)
"""Something that a browser fetches from another host when it shows a page."""


@pytest.mark.slow
def test_the_site_is_built_without_a_warning_and_fetches_nothing_from_another_host(site: Path) -> None:
    pages = [file for file in site.rglob("*") if file.suffix in (".html", ".css")]
    assert {"index.html", "architecture.html", "first_release.html", "CONTRIBUTING.html"} <= {
        p.name for p in pages
    }
    assert [p.name for p in pages if FETCHED.search(p.read_text(encoding="utf-8"))] == []


@pytest.mark.parametrize(
    "page",
    [
        '<link rel="stylesheet" href="https://fonts.googleapis.com/css">',
        "<script src=//unpkg.com/mermaid></script>",
        "@font-face{src:url(https://fonts.gstatic.com/a.woff2)}",
    ],
)
def test_a_page_that_fetches_something_is_caught(page: str) -> None:
    assert FETCHED.search(page)


@pytest.mark.slow
def test_the_pages_of_the_api_hold_docstrings_with_their_doctests_as_code(site: Path) -> None:
    page = (site / "api" / "accounting.html").read_text(encoding="utf-8")
    assert "Bounded range" in page
    assert "&gt;&gt;&gt;" in page and "<blockquote>" not in page
