"""The mistakes that people make, and what is said of each: one paragraph, after "Error: ".

A paragraph names the key or the file, and the remedy. In it HERE stands for the folder, TODAY for the date,
ID for a new release's id, and ANY for a list that grows with the grammar.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

CONFIG = """\
source: {path: people.csv}
privacy: {epsilon: 1.0, delta: 1.0e-6}
ledger: {dataset: people, cap: {epsilon: 3, delta: 1.0e-5}}
columns:
  age: {type: integer, min: 0, max: 89}
  sex: {type: category, values: [F, M]}
  income: {type: number, min: 0, max: 1000, decimals: 1}
  seen: {type: date, min: 2024-01-01, max: 2026-12-31}
publish:
  statistics: [{mean: income, by: sex}]
"""

TABLE = "person,age,sex,income,seen\n" + "".join(
    f"p{i},{i % 90},{'FM'[i % 2]},{i}.5,2025-01-{1 + i % 28:02}\n" for i in range(60)
)
PNG = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + bytes(range(256))


@dataclass(frozen=True)
class Mistake:
    """A mistake, and what comes of it.

    Attributes:
        name: what somebody did.
        code: the exit code.
        said: the paragraph on standard error.
        changes: texts of the config, and what stands in place of each.
        options: more of the command ``dpsynth run config.yaml --plain``.
        command: another command in its place.
        files: more files, or other ones; None is a folder.
    """

    name: str
    code: int
    said: str
    changes: tuple[tuple[str, str], ...] = ()
    options: tuple[str, ...] = ()
    command: tuple[str, ...] = ()
    files: Mapping[str, bytes | None] = field(default_factory=dict)

    @property
    def config(self) -> str:
        """The config with its changes."""
        text = CONFIG
        for old, new in self.changes:
            assert old in text, (self.name, old)
            text = text.replace(old, new, 1)
        return text


MISTAKES = (
    Mistake(
        "a key misspelt",
        2,
        (
            "config.yaml, line 2: privacy.epsilonn is not a known key (did you mean 'epsilon'?); the "
            "keys here are ANY."
        ),
        changes=(("epsilon: 1.0", "epsilonn: 1.0"),),
    ),
    Mistake(
        "a section misspelt",
        2,
        ("config.yaml, line 2: privcay is not a known key (did you mean 'privacy'?); the keys here are ANY."),
        changes=(("privacy:", "privcay:"),),
    ),
    Mistake(
        "a section twice",
        2,
        "config.yaml, line 9: the key privacy is given twice (first on line 2).",
        changes=(("publish:", "privacy: {epsilon: 2}\npublish:"),),
    ),
    Mistake(
        "a section left out",
        2,
        (
            "config.yaml, line 1: source is missing: say where the table is, such as source: {path: "
            "data/table.csv}."
        ),
        changes=(("source: {path: people.csv}\n", ""),),
    ),
    Mistake(
        "a section without a value",
        2,
        "config.yaml, line 2: privacy has no value; its keys are ANY.",
        changes=(("privacy: {epsilon: 1.0, delta: 1.0e-6}", "privacy:"),),
    ),
    Mistake(
        "a text for a number",
        2,
        (
            "config.yaml, line 2: privacy.epsilon must be a number of at least 1e-6 and at most 1e9 (0.1 "
            "to 5 is usual)."
        ),
        changes=(("epsilon: 1.0,", "epsilon: much,"),),
    ),
    Mistake(
        "a list for a number",
        2,
        (
            "config.yaml, line 2: privacy.epsilon must be a number of at least 1e-6 and at most 1e9 (0.1 "
            "to 5 is usual)."
        ),
        changes=(("epsilon: 1.0,", "epsilon: [1, 2],"),),
    ),
    Mistake(
        "a comma for a point",
        2,
        (
            "config.yaml, line 2: privacy.epsilon must be a number of at least 1e-6 and at most 1e9 (0.1 "
            "to 5 is usual); write 0.5, with a point."
        ),
        changes=(("epsilon: 1.0,", "epsilon: '0,5',"),),
    ),
    Mistake(
        "a number for a name",
        2,
        (
            "config.yaml, line 3: ledger.dataset must be a name for the table; YAML reads this as a "
            "number or truth value, so quote it."
        ),
        changes=(("dataset: people", "dataset: 2026"),),
    ),
    Mistake(
        "a tab",
        2,
        (
            "config.yaml, line 5, column 1: this is not valid YAML: found character '\\t' that cannot "
            "start any token. Indent with spaces, not with tabs."
        ),
        changes=(("  age:", "	age:"),),
    ),
    Mistake(
        "no blank after a colon",
        2,
        (
            "config.yaml, line 2: privacy.epsilon:1.0 is not a known key (did you mean 'epsilon'?); the "
            "keys here are ANY."
        ),
        changes=(("privacy: {epsilon: 1.0, delta: 1.0e-6}", "privacy: {epsilon:1.0}"),),
    ),
    Mistake(
        "a bracket that is not closed",
        2,
        (
            "config.yaml, line 6, column 38: this is not valid YAML: expected ',' or ']', but got '}'. "
            "Check quotes, brackets and indentation on this line and the one before."
        ),
        changes=(("values: [F, M]}", "values: [F, M}"),),
    ),
    Mistake(
        "a tag",
        2,
        (
            "config.yaml, line 1: YAML tags (words that start with '!') are not allowed. If the text "
            "itself starts with '!', put it in quotes."
        ),
        changes=(("path: people.csv", "path: !!python/name:os.system"),),
    ),
    Mistake(
        "a list at the top",
        2,
        (
            "config.yaml, line 1: the top level must be a mapping of keys to values, such as 'privacy: "
            "{epsilon: 1.0}'."
        ),
        changes=((CONFIG, "- source: people.csv\n"),),
    ),
    Mistake(
        "an empty config",
        2,
        "config.yaml is empty. It needs at least the keys source, privacy and columns.",
        changes=((CONFIG, ""),),
    ),
    Mistake(
        "a picture for a config",
        2,
        "config.yaml, line 1: this is not UTF-8 text. Save the file as UTF-8.",
        files={"config.yaml": PNG},
    ),
    Mistake(
        "no config",
        2,
        "There is no file confg.yaml. Check the path of the configuration.",
        command=(
            "run",
            "confg.yaml",
        ),
    ),
    Mistake(
        "a folder for a config",
        2,
        "folder is a folder. Give the path of a YAML file in it.",
        command=(
            "run",
            "folder",
        ),
        files={"folder": None},
    ),
    Mistake(
        "no table",
        4,
        (
            "There is no file poeple.csv. Set source.path in the config, or give --source PATH; relative "
            "paths start at the working directory. Nothing was charged."
        ),
        changes=(("people.csv", "poeple.csv"),),
    ),
    Mistake(
        "a folder for a table",
        2,
        (
            "config.yaml, line 1: source.path must end in .csv, .tsv, .parquet, .xlsx or, packed, in "
            ".csv.gz and the like; or say which it is with format: csv."
        ),
        changes=(("people.csv", "folder"),),
        files={"folder": None},
    ),
    Mistake(
        "a folder of tables",
        4,
        (
            "folder.csv is a folder, and a table is one file, unless it is a folder of .parquet files with "
            "source.format: parquet. Set source.path in the config, or give --source PATH; relative paths "
            "start at the working directory. Nothing was charged."
        ),
        changes=(("people.csv", "folder.csv"),),
        files={"folder.csv": None},
    ),
    Mistake(
        "a table of another kind",
        2,
        (
            "config.yaml, line 1: source.path must end in .csv, .tsv, .parquet, .xlsx or, packed, in "
            ".csv.gz and the like; or say which it is with format: csv."
        ),
        changes=(("people.csv", "people.sav"),),
        files={"people.sav": b"x"},
    ),
    Mistake(
        "an empty table",
        4,
        "people.csv is empty: its first line must be a header. Nothing was charged.",
        files={"people.csv": b""},
    ),
    Mistake(
        "a picture for a table",
        4,
        (
            "people.csv is no CSV file: its first line is not UTF-8 text. It looks like windows-1252: "
            "set source.encoding to what it is written in, or save it again as UTF-8. Nothing was "
            "charged."
        ),
        files={"people.csv": PNG},
    ),
    Mistake(
        "another separator",
        4,
        (
            "people.csv has no column 'age', 'sex', 'income', 'seen'. Its first line has ';' between the "
            "names: set source.separator: ';'. Nothing was charged."
        ),
        files={"people.csv": TABLE.replace(",", ";").encode()},
    ),
    Mistake(
        "no header",
        4,
        (
            "people.csv has no column 'age', 'sex', 'income', 'seen'. Its first line, or schema, must "
            "name every column that the config declares, spelt the same, and those of privacy.unit and "
            "period. Nothing was charged."
        ),
        files={"people.csv": TABLE.split("\n", 1)[1].encode()},
    ),
    Mistake(
        "another encoding",
        4,
        (
            "people.csv is no CSV file: its first line is not UTF-8 text. It looks like windows-1252: "
            "set source.encoding to what it is written in, or save it again as UTF-8. Nothing was "
            "charged."
        ),
        files={"people.csv": TABLE.replace("sex", "s\u00e9x").encode("cp1252")},
    ),
    Mistake(
        "a column in capitals",
        4,
        (
            "people.csv has no column 'age'. Did you mean 'Age', which it has? Names must be spelt the "
            "same, capitals included. Nothing was charged."
        ),
        files={"people.csv": TABLE.replace("age", "Age", 1).encode()},
    ),
    Mistake(
        "a column that is not there",
        4,
        (
            "people.csv has no column 'height'. Its first line, or schema, must name every column that "
            "the config declares, spelt the same, and those of privacy.unit and period. Nothing was "
            "charged."
        ),
        changes=(("  sex:", "  height: {type: number, min: 0, max: 3}\n  sex:"),),
    ),
    Mistake(
        "a column twice in the config",
        2,
        "config.yaml, line 6: the key columns.age is given twice (first on line 5).",
        changes=(("  sex:", "  age: {type: integer, min: 0, max: 9}\n  sex:"),),
    ),
    Mistake(
        "a column twice in the table",
        4,
        (
            "people.csv has more than one column named 'age', so it isn't clear which one is meant. Give "
            "each column of its header a name of its own, or leave this one out of the config. Nothing "
            "was charged."
        ),
        files={"people.csv": TABLE.replace("person", "age", 1).encode()},
    ),
    Mistake(
        "an unknown type",
        2,
        "config.yaml, line 5: columns.age.type must be one of ANY or derived (did you mean 'integer'?).",
        changes=(("type: integer", "type: int"),),
    ),
    Mistake(
        "min above max",
        2,
        "config.yaml, line 5: columns.age.min must not be above max; it is 89, and max is 0.",
        changes=(("min: 0, max: 89", "min: 89, max: 0"),),
    ),
    Mistake(
        "min equal to max",
        2,
        "config.yaml, line 5: columns.age has one possible value only; remove the column.",
        changes=(("min: 0, max: 89", "min: 5, max: 5, missing: false"),),
    ),
    Mistake(
        "no bounds",
        2,
        (
            "config.yaml, line 5: columns.age.min is missing; give min and max, or the edges of bins, "
            "from public knowledge."
        ),
        changes=(("min: 0, max: 89", "bins: 10"),),
    ),
    Mistake(
        "bins that fall",
        2,
        "config.yaml, line 5: columns.age.bins[2] must be above the edge before it; edges rise.",
        changes=(("min: 0, max: 89", "bins: [0, 10, 5]"),),
    ),
    Mistake(
        "no bins",
        2,
        (
            "config.yaml, line 5: columns.age.bins must be a whole number of at least 1 and at most "
            "10000 (or a list of rising edges)."
        ),
        changes=(("min: 0, max: 89", "min: 0, max: 89, bins: 0"),),
    ),
    Mistake(
        "dates reversed",
        2,
        (
            "config.yaml, line 8: columns.seen.min must not be after max; it is 2026-12-31, and max is "
            "2024-01-01."
        ),
        changes=(("min: 2024-01-01, max: 2026-12-31", "min: 2026-12-31, max: 2024-01-01"),),
    ),
    Mistake(
        "a date that is none",
        2,
        "config.yaml, line 8: columns.seen.min must be a date written as 2020-01-31.",
        changes=(("min: 2024-01-01", "min: 2024-02-30"),),
    ),
    Mistake(
        "a value twice",
        2,
        "config.yaml, line 6: columns.sex.values[2] repeats the category 'F'; list each category once.",
        changes=(("values: [F, M]", "values: [F, M, F]"),),
    ),
    Mistake(
        "one value",
        2,
        "config.yaml, line 6: columns.sex has one possible value only; remove the column.",
        changes=(("values: [F, M]", "values: [F], missing: false"),),
    ),
    Mistake(
        "a truth value for a text",
        2,
        (
            "config.yaml, line 6: columns.sex.values[0] must be a category: a text, or a whole number; "
            "put this one in quotes."
        ),
        changes=(("values: [F, M]", "values: [true, false]"),),
    ),
    Mistake(
        "a number that is written with quotes",
        2,
        (
            "config.yaml, line 5: columns.age.max must be a whole number of at least -1000000000000000 "
            "and at most 1000000000000000; write it without quotes."
        ),
        changes=(("max: 89", "max: '89'"),),
    ),
    Mistake(
        "missing values among the values",
        2,
        (
            "config.yaml, line 6: columns.sex.values[2] lists '?', which is also a marker of missing "
            "cells; take it out of one."
        ),
        changes=(("values: [F, M]", "values: [F, M, '?'], missing: '?'"),),
    ),
    Mistake(
        "no values",
        2,
        (
            "config.yaml, line 6: columns.sex.values is missing; list all values, from public knowledge, "
            "such as [F, M], or find them with open: true."
        ),
        changes=(("type: category, values: [F, M]", "type: category"),),
    ),
    Mistake(
        "epsilon of 0",
        2,
        (
            "config.yaml, line 2: privacy.epsilon must be a number of at least 1e-6 and at most 1e9 (0.1 "
            "to 5 is usual)."
        ),
        changes=(("epsilon: 1.0,", "epsilon: 0,"),),
    ),
    Mistake(
        "epsilon below 0",
        2,
        (
            "config.yaml, line 2: privacy.epsilon must be a number of at least 1e-6 and at most 1e9 (0.1 "
            "to 5 is usual)."
        ),
        changes=(("epsilon: 1.0,", "epsilon: -1,"),),
    ),
    Mistake(
        "epsilon beyond all bounds",
        2,
        (
            "config.yaml, line 2: privacy.epsilon must be a number of at least 1e-6 and at most 1e9 (0.1 "
            "to 5 is usual)."
        ),
        changes=(("epsilon: 1.0,", "epsilon: 1e12,"),),
    ),
    Mistake(
        "delta of 1",
        2,
        (
            "config.yaml, line 2: privacy.delta must be a number above 0 and below 1 (well below 1 "
            "divided by the number of rows)."
        ),
        changes=(("delta: 1.0e-6", "delta: 1"),),
    ),
    Mistake(
        "no delta for gaussian noise",
        2,
        (
            "config.yaml, line 2: privacy.delta is missing: gaussian noise needs it, such as 1e-9. Or "
            "use noise: laplace."
        ),
        changes=(("delta: 1.0e-6", "noise: gaussian"),),
    ),
    Mistake(
        "a unit misspelt",
        2,
        (
            "config.yaml, line 2: privacy.unit must be row, event, or a mapping such as {column: patient_id, "
            "max_rows: 4}."
        ),
        changes=(("delta: 1.0e-6", "delta: 1.0e-6, unit: rows"),),
    ),
    Mistake(
        "a unit without a bound",
        2,
        (
            "config.yaml, line 2: privacy.unit.max_rows is missing: give the most rows of one person "
            "that are used, such as 4, or private to have it found."
        ),
        changes=(("delta: 1.0e-6", "delta: 1.0e-6, unit: {column: person}"),),
    ),
    Mistake(
        "a bound of 0 rows",
        2,
        (
            "config.yaml, line 2: privacy.unit.max_rows must be a whole number of at least 1 and at most "
            "10000."
        ),
        changes=(("delta: 1.0e-6", "delta: 1.0e-6, unit: {column: person, max_rows: 0}"),),
    ),
    Mistake(
        "a unit that is no column",
        4,
        (
            "people.csv has no column 'patient'. Its first line, or schema, must name every column that "
            "the config declares, spelt the same, and those of privacy.unit and period. Nothing was "
            "charged."
        ),
        changes=(
            ("delta: 1.0e-6}", "delta: 1.0e-6, unit: {column: patient, max_rows: 3}}"),
            ("dataset: people", "dataset: persons, url: sqlite:///other.db"),
        ),
    ),
    Mistake(
        "more than the cap",
        3,
        (
            "The ledger sqlite:///ledger.db refuses release ID: it asks for ε = 4, δ = 1e-6, and what "
            "the releases of dataset 'people' count for comes to ε = 0.872471, δ = 1e-5 of its cap of ε "
            "= 3, δ = 1e-5 (filter gdp). One of an epsilon up to 3.16167 at δ = 1e-6 would still fit. Of "
            "releases like the last one, 8 more fit. These releases have not ended and can be resumed or "
            "given up: 20260101-00000000. Ask for less with privacy.epsilon and privacy.delta, or, if it "
            "may be raised, raise the cap with: dpsynth ledger cap 'people' --epsilon NEW --config "
            "CONFIG --reason WHY. Nothing was read and nothing was charged."
        ),
        changes=(("epsilon: 1.0,", "epsilon: 4,"),),
    ),
    Mistake(
        "a cap of nothing",
        2,
        "config.yaml, line 3: ledger.cap.epsilon must be a number above 0 and at most 1e9.",
        changes=(("cap: {epsilon: 3,", "cap: {epsilon: 0,"),),
    ),
    Mistake(
        "a ledger of another kind",
        2,
        (
            "config.yaml, line 3: ledger.url must be the address of a database, such as "
            "sqlite:///ledger.db or postgresql://host/name."
        ),
        changes=(("dataset: people", "dataset: people, url: mysql://host/name"),),
    ),
    Mistake(
        "a ledger that is a text",
        2,
        (
            "The ledger sqlite:///people.csv can't be used: its file is no database. Name another file "
            "in ledger.url."
        ),
        changes=(("dataset: people", "dataset: people, url: sqlite:///people.csv"),),
    ),
    Mistake(
        "a ledger in a folder that is a file",
        2,
        "The ledger sqlite:///people.csv/l.db can't be made: HERE/people.csv is a file, and no folder.",
        changes=(("dataset: people", "dataset: people, url: sqlite:///people.csv/l.db"),),
    ),
    Mistake(
        "a second account for a table",
        2,
        (
            "HERE/people.csv has an account in the ledger sqlite:///ledger.db, 'people', and this "
            "configuration names 'people2', which would give the same people a second cap. Write "
            "ledger.dataset: people, or leave it out. Only if nobody in this release is in the releases "
            "of that dataset, say why with ledger.other_people, for the record. Nothing was read and "
            "nothing was charged."
        ),
        changes=(("dataset: people", "dataset: people2"),),
    ),
    Mistake(
        "another unit in the same account",
        2,
        (
            "Dataset 'people' is in the ledger with the unit 'one row' and the relation add_remove, and "
            "this config has 'one person: all rows with the same person, at most 3' and add_remove. "
            "Their costs can't be added up. To protect persons from now on, in the same account, say how "
            "many rows one of them has at most in the releases so far: dpsynth ledger unit 'people' "
            "--config CONFIG --most-rows NUMBER --reason WHY. If nobody knows, write --most-rows unknown. "
            "Nothing was read and nothing was charged."
        ),
        changes=(("delta: 1.0e-6", "delta: 1.0e-6, unit: {column: person, max_rows: 3}"),),
    ),
    Mistake(
        "a command misspelt",
        2,
        "No such command 'rnu'. Did you mean 'run'? See: dpsynth --help",
        command=(
            "rnu",
            "config.yaml",
        ),
    ),
    Mistake(
        "an option misspelt",
        2,
        "No such option: --plian (Possible options: --plain). See: dpsynth run --help",
        command=(
            "run",
            "config.yaml",
            "--plian",
        ),
    ),
    Mistake("no argument", 2, "Missing argument 'config'. See: dpsynth run --help", command=("run",)),
    Mistake(
        "a release to resume that is not there",
        2,
        (
            "There is no release 20300131-0a1b2c3d to resume under outputs/config: no journal is there. "
            "If it was deleted, what the release reserved stays charged; give it up with: dpsynth ledger "
            'abandon 20300131-0a1b2c3d --config CONFIG --reason "..."'
        ),
        options=(
            "--resume",
            "20300131-0a1b2c3d",
        ),
    ),
    Mistake(
        "an id that is none",
        2,
        "'../x' is no release id: one looks like 20300131-0a1b2c3d.",
        options=(
            "--resume",
            "../x",
        ),
    ),
    Mistake(
        "a period without periods",
        2,
        (
            "--period has no use with this config, which has no key period: give one, such as period: "
            "{column: visited, every: month}, or leave out --period."
        ),
        options=(
            "--period",
            "2026-01",
        ),
    ),
    Mistake(
        "a period that has not ended",
        2,
        (
            "--period 2999-01 has not ended: its last day is 2999-01-31, and today is TODAY. A period is "
            "released once, when all of its rows are there. Wait, or name an earlier one."
        ),
        changes=(("columns:", "period: {column: seen, every: month}\ncolumns:"),),
        options=(
            "--period",
            "2999-01",
        ),
    ),
    Mistake(
        "a period that is none",
        2,
        (
            "--period must name a month, such as 2026-03, since the config has period.every: month; "
            "'January' is none."
        ),
        changes=(("columns:", "period: {column: seen, every: month}\ncolumns:"),),
        options=(
            "--period",
            "January",
        ),
    ),
    Mistake(
        "bundles under a file",
        2,
        (
            "The folder for bundles people.csv/x/config can't be made: Not a directory. Give another "
            "with --out."
        ),
        options=(
            "--out",
            "people.csv/x",
        ),
    ),
    Mistake(
        "a ledger command about no dataset",
        2,
        "The ledger has no dataset 'patients'; it has 'people'.",
        command=(
            "ledger",
            "show",
            "patients",
        ),
    ),
    Mistake(
        "a schedule that is none",
        2,
        "config.yaml, line 4: schedule.cron must be five cron fields in quotes, such as '0 3 1 * *'.",
        changes=(("columns:", "schedule: {cron: every day, timezone: UTC}\ncolumns:"),),
    ),
    Mistake(
        "a time zone that is none",
        2,
        (
            "config.yaml, line 4: schedule.timezone must be the name of a time zone, such as "
            "Europe/Paris or UTC; 'Europe/Pari' is not known here (did you mean 'Europe/Paris'?)."
        ),
        changes=(("columns:", "schedule: {cron: '0 3 1 * *', timezone: Europe/Pari}\ncolumns:"),),
    ),
    Mistake(
        "nothing to serve",
        2,
        (
            "config.yaml has no key schedule, so there is no time to release at. Give it one, such as "
            "schedule: {cron: '0 3 1 * *', timezone: Europe/Paris}."
        ),
        command=(
            "serve",
            "config.yaml",
        ),
    ),
    Mistake(
        "a rule about no column",
        2,
        (
            "config.yaml, line 4: constraints[0] names 'aeg', which is no column of the synthetic table "
            "(did you mean 'age'?)."
        ),
        changes=(("columns:", "constraints: ['aeg < 15']\ncolumns:"),),
    ),
    Mistake(
        "a rule that is none",
        2,
        "config.yaml, line 4: constraints[0] has small where missing should stand.",
        changes=(("columns:", "constraints: ['age is small']\ncolumns:"),),
    ),
    Mistake(
        "rules that no row obeys",
        2,
        (
            "config.yaml, line 4: constraints[1] and constraints[0], 'age < 15', leave no row of the "
            "declared values: none was found that obeys both. Rows were tried that hold a value in every "
            "column, but those of which a rule says 'is missing'."
        ),
        changes=(("columns:", "constraints: ['age < 15', 'age > 20']\ncolumns:"),),
    ),
    Mistake(
        "a workload of no column",
        2,
        (
            "config.yaml, line 4: structure.workload.weights.incom names 'incom', which is not among "
            "columns (did you mean 'income'?)."
        ),
        changes=(("columns:", "structure: {workload: {weights: {incom: 2}}}\ncolumns:"),),
    ),
    Mistake(
        "a method misspelt",
        2,
        (
            "config.yaml, line 4: structure.method must be independent, mst, privbayes, aim, one_shot, "
            "fixed or auto (did you mean 'aim'?)."
        ),
        changes=(("columns:", "structure: {method: aimm}\ncolumns:"),),
    ),
    Mistake(
        "a statistic of no column",
        2,
        (
            "config.yaml, line 10: publish.statistics[0] names 'incom', which is not among columns (did "
            "you mean 'income'?)."
        ),
        changes=(("mean: income", "mean: incom"),),
    ),
    Mistake(
        "the mean of texts",
        2,
        (
            "config.yaml, line 10: publish.statistics[0].mean asks for the mean of 'sex', whose values "
            "are not numbers."
        ),
        changes=(("mean: income, by: sex", "mean: sex"),),
    ),
    Mistake(
        "review not done",
        2,
        (
            "config.yaml, line 9: review still lists privacy. Each of these was guessed, or is to be "
            "filled in. See to it that it is right and that anyone could know it without the table; then "
            "take it out of the list. Nothing is planned or run until the list is empty."
        ),
        changes=(("publish:", "review: [privacy]\npublish:"),),
    ),
    Mistake(
        "an anchor that is not there",
        2,
        (
            "config.yaml, line 1, column 16: this is not valid YAML: found undefined alias 'table'. A "
            "text that begins with '*' stands in quotes; an alias needs its anchor, '&', before it."
        ),
        changes=(("path: people.csv", "path: *table"),),
    ),
    Mistake(
        "a label in two releases",
        2,
        "config.yaml, line 4: period.every must be day, week, month, quarter, year or value.",
        changes=(("columns:", "period: {column: seen, every: fortnight}\ncolumns:"),),
    ),
    Mistake(
        "shares above 1",
        2,
        "config.yaml, line 2: privacy.split must sum to at most 1; these shares sum to 1.2.",
        changes=(
            ("delta: 1.0e-6}", "delta: 1.0e-6, split: {one_way: 0.8, structure: 0.2, marginals: 0.2}}"),
        ),
    ),
    Mistake(
        "columns listed twice in a statistic",
        2,
        "config.yaml, line 10: publish.statistics[0].crosstab[1] repeats 'sex'.",
        changes=(("[{mean: income, by: sex}]", "[{crosstab: [sex, sex]}]"),),
    ),
    Mistake(
        "Excel that is none",
        4,
        (
            "people.xlsx can't be read as an Excel workbook: it is of another format, or broken. Nothing "
            "was charged."
        ),
        changes=(("people.csv", "people.xlsx"),),
        files={"people.xlsx": b"x"},
    ),
    Mistake(
        "a compressed table that is none",
        4,
        (
            "people.csv.gz can't be unpacked: it is no .gz file, or it is broken or not whole. Set "
            "source.compression to what it is, or fetch the file again. Nothing was charged."
        ),
        changes=(("people.csv", "people.csv.gz"),),
        files={"people.csv.gz": b"x"},
    ),
    Mistake(
        "a Parquet file that is none",
        4,
        (
            "people.parquet can't be read as a Parquet file: it is of another format, or broken. Nothing "
            "was charged."
        ),
        changes=(("people.csv", "people.parquet"),),
        files={"people.parquet": TABLE.encode()},
    ),
    Mistake(
        "resumed and abandoned at once",
        2,
        "--resume goes on with a release and --abandon ends it: give one of them.",
        options=(
            "--resume",
            "20300131-0a1b2c3d",
            "--abandon",
            "20300131-0a1b2c3d",
        ),
    ),
    Mistake(
        "with and without Prefect at once",
        2,
        "--plain and --prefect contradict each other. Give one of them, or none.",
        options=("--prefect",),
    ),
    Mistake(
        "a plan of nothing",
        2,
        "There is no file confg.yaml. Check the path of the configuration.",
        command=(
            "plan",
            "confg.yaml",
        ),
    ),
    Mistake(
        "a starter of nothing",
        4,
        "There is no file poeple.csv. Relative paths start at the working directory.",
        command=(
            "init",
            "poeple.csv",
        ),
    ),
    Mistake(
        "a starter over a config",
        2,
        "There is a file config.yaml already, and it is kept. Give another name with --out.",
        command=(
            "init",
            "people.csv",
            "--out",
            "config.yaml",
        ),
    ),
    Mistake(
        "an example that is not there",
        2,
        (
            "There is no example 'randhei'. The examples are: adult, minimal, randhie, randhie-found, "
            "randhie-monthly."
        ),
        command=(
            "example",
            "randhei",
        ),
    ),
    Mistake(
        "a ledger that is not there",
        2,
        (
            "There is nothing in the ledger sqlite:///nowhere.db: no release was ever reserved in it. If "
            "there should be, name the right one with --ledger or --config; SQLite paths are relative to "
            "the working directory."
        ),
        command=(
            "ledger",
            "show",
            "--ledger",
            "sqlite:///nowhere.db",
        ),
    ),
    Mistake(
        "a cap without a reason",
        2,
        "Missing option '--reason'. See: dpsynth ledger cap --help",
        command=(
            "ledger",
            "cap",
            "people",
            "--epsilon",
            "5",
        ),
    ),
    Mistake(
        "a cap of no number",
        2,
        "--epsilon must be a number, at least 0, such as 20.",
        command=(
            "ledger",
            "cap",
            "people",
            "--epsilon",
            "five",
            "--reason",
            "agreed",
        ),
    ),
    Mistake(
        "a bundle that is not there",
        1,
        (
            "outputs/nowhere is no bundle: it has no manifest.json. Give the folder of a release, or its "
            "folder public."
        ),
        command=("query", "outputs/nowhere", "count"),
    ),
    Mistake(
        "a folder that is no bundle, to verify",
        1,
        "empty is no bundle: it has no manifest.json. Give the folder of a release, or its folder public.",
        command=("verify", "empty"),
        files={"empty": None},
    ),
    Mistake(
        "a public key that is none",
        1,
        "'1f0c' is no public key: it must be ed25519: and 64 hexadecimal digits.",
        command=("verify", "empty", "--key", "1f0c"),
        files={"empty": None},
    ),
    Mistake(
        "no rows of a sample",
        2,
        "Missing option '--rows'. See: dpsynth sample --help",
        command=("sample", "outputs/nowhere"),
    ),
    Mistake(
        "a signing key that is not there",
        2,
        (
            "The signing key key.pem can't be opened: No such file or directory. `dpsynth keygen FILE` makes "
            "one."
        ),
        changes=(("publish:", "publish:\n  sign: key.pem"),),
    ),
    Mistake(
        "a signing key that is a table",
        2,
        (
            "people.csv is no signing key: it must be an Ed25519 key as PEM, without a password, such as "
            "`dpsynth keygen FILE` makes."
        ),
        changes=(("publish:", "publish:\n  sign: people.csv"),),
    ),
    Mistake(
        "a minimum set size of one",
        2,
        (
            "config.yaml, line 10: publish.minimum_set_size must be a whole number of at least 2 and at most "
            "1000000000."
        ),
        changes=(("publish:", "publish:\n  minimum_set_size: 1"),),
    ),
)
