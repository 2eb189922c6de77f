"""What can't be run is refused in one paragraph with file, line, key and what to write instead."""

import pytest

from dpsynth.config import from_mapping, load
from dpsynth.errors import ConfigError

EPSILON = "epsilon: 1.0, delta: 1.0e-9"
AGE = "{type: integer, min: 0, max: 110}"
SEX = "{type: category, values: [F, M]}"
INCOME = "{type: number, min: 0, max: 1000}"

REPLACED = [
    # privacy
    (EPSILON, "epsilon: 0", 2, "privacy.epsilon must be a number of at least 1e-6"),
    (EPSILON, "epsilon: -1", 2, "privacy.epsilon must be a number"),
    (EPSILON, "epsilon: .nan", 2, "nan and inf are not allowed"),
    (EPSILON, "epsilon: .inf", 2, "nan and inf are not allowed"),
    (EPSILON, "epsilon: '1.0'", 2, "write it without quotes"),
    (EPSILON, "epsilon: true", 2, "privacy.epsilon must be a number"),
    (EPSILON, "epsilon: one", 2, "privacy.epsilon must be a number"),
    (EPSILON, "epsilon:", 2, "privacy.epsilon has no value"),
    (EPSILON, "epsilon: [1]", 2, "privacy.epsilon must be a number"),
    (EPSILON, "epsilon: 1e-999999", 2, "privacy.epsilon must be a number"),
    (EPSILON, "delta: 1e-9", 2, "privacy.epsilon is missing: give a number above 0"),
    (EPSILON, "epsilonn: 1", 2, "privacy.epsilonn is not a known key (did you mean 'epsilon'?)"),
    (EPSILON, "epsilon: 1, delta: 0", 2, "privacy.delta must be a number above 0 and below 1"),
    (EPSILON, "epsilon: 1, delta: 1", 2, "privacy.delta must be a number above 0 and below 1"),
    (EPSILON, "epsilon: 1, noise: gaussian", 2, "privacy.delta is missing: gaussian noise needs it"),
    (
        EPSILON,
        "epsilon: 1, noise: gausian",
        2,
        "privacy.noise must be gaussian or laplace (did you mean 'gau",
    ),
    (EPSILON, "epsilon: 1, accountant: zcdp", 2, "privacy.delta is missing: accountant zcdp needs it"),
    (EPSILON, "epsilon: 1, accountant: gdp", 2, "privacy.delta is missing: accountant gdp needs it"),
    (EPSILON, f"{EPSILON}, accountant: sequential", 2, "privacy.accountant must be gdp, zcdp or auto"),
    (
        EPSILON,
        f"{EPSILON}, noise: laplace, accountant: gdp",
        2,
        "privacy.accountant must be sequential, zcdp or auto",
    ),
    (EPSILON, "epsilon: 1, neighbours: bounded", 2, "privacy.neighbours must be add_remove or replace_one"),
    (EPSILON, "epsilon: 1, neighbors: add_remove", 2, "did you mean 'neighbours'?)"),
    (EPSILON, "epsilon: 1, unit: person", 2, "privacy.unit must be row, event, or a mapping"),
    (EPSILON, "epsilon: 1, unit: {column: id}", 2, "privacy.unit.max_rows is missing"),
    (
        EPSILON,
        "epsilon: 1, unit: {column: id, max_rows: 0}",
        2,
        "privacy.unit.max_rows must be a whole number",
    ),
    (EPSILON, "epsilon: 1, unit: {column: 7, max_rows: 2}", 2, "quote it"),
    (EPSILON, "epsilon: 1, unit: {colum: id, max_rows: 2}", 2, "did you mean 'column'?)"),
    (EPSILON, "epsilon: 1, split: {one_way: 0.5, structure: 0.3, marginals: 0.3}", 2, "sum to at most 1"),
    (
        EPSILON,
        f"{EPSILON}, split: {{one_way: 1e-300, structure: 0.3, marginals: 0.3}}",
        2,
        "split.one_way must be 0 or at least 0.0001",
    ),
    (
        EPSILON,
        "epsilon: 1, split: {one_way: 0, structure: 0.3, marginals: 0.3}",
        2,
        "one_way must be above 0",
    ),
    (
        EPSILON,
        "epsilon: 1, split: {one_way: 0.9, marginals: 0.1}",
        2,
        "privacy.split.structure must be above",
    ),
    (
        EPSILON,
        "epsilon: 1, split: {one_way: 0.9, structure: 0.1}",
        2,
        "privacy.split.marginals must be above 0 with structure.method",
    ),
    (EPSILON, "epsilon: 1, split: {one_way: 1.5}", 2, "privacy.split.one_way must be a number of at least 0"),
    (EPSILON, "epsilon: 1, split: 0.5", 2, "privacy.split must be a mapping"),
    # source
    (
        "{path: data/table.csv}",
        "{path: data/table.xls}",
        1,
        "source.path must end in .csv, .tsv, .parquet, .xlsx",
    ),
    ("{path: data/table.csv}", "{}", 1, "source.path is missing"),
    ("{path: data/table.csv}", "data/table.csv", 1, "source must be a mapping"),
    ("{path: data/table.csv}", "", 1, "source has no value"),
    (
        "{path: data/table.csv}",
        "{path: a.csv, format: excel}",
        1,
        "source.format must be csv, parquet or xlsx",
    ),
    (
        "{path: data/table.csv}",
        "{path: a.csv, separator: x}",
        1,
        "source.separator must be ',', ';', '|' or tab",
    ),
    ("{path: data/table.csv}", "{path: a.parquet, separator: ';'}", 1, "source.separator is for .csv files"),
    (
        "source: {path: data/table.csv}",
        "sourc: {path: a.csv}",
        1,
        "sourc is not a known key (did you mean 'so",
    ),
    ("source: {path: data/table.csv}", "release: x", 1, "source is missing: say where the table is"),
    # columns
    (
        AGE,
        "{type: integer, min: 9, max: 1}",
        4,
        "columns.age.min must not be above max; it is 9, and max is 1",
    ),
    (AGE, "{type: integer, max: 1}", 4, "columns.age.min is missing"),
    (AGE, "{type: integer, min: 0}", 4, "columns.age.max is missing"),
    (AGE, "{type: integer, min: 0.5, max: 9}", 4, "columns.age.min must be a whole number"),
    (AGE, "{type: integer, min: 0, max: 9, bins: 11}", 4, "columns.age.bins must be at most 10"),
    (AGE, "{type: integer, min: 0, max: 9, bins: 0}", 4, "columns.age.bins must be a whole number"),
    (AGE, "{type: integer, min: 0, max: 99999, bins: 10001}", 4, "columns.age.bins must be a whole number"),
    (AGE, "{type: integer, bins: [0, 10, 9]}", 4, "columns.age.bins[2] must be above the edge before it"),
    (AGE, "{type: integer, bins: [0, 1.5, 10]}", 4, "columns.age.bins[1] must be a whole number"),
    (AGE, "{type: integer, bins: [0]}", 4, "columns.age.bins must be a number of bins, or a list"),
    (AGE, "{type: integer, min: 1, bins: [0, 10]}", 4, "columns.age.min must be the first edge of bins, 0"),
    (AGE, "{type: integer, max: 9, bins: [0, 10]}", 4, "columns.age.max must be the last edge of bins, 10"),
    (AGE, "{type: integer, min: 0, max: 1e17}", 4, "columns.age.max must be a whole number"),
    (
        AGE,
        "{type: integer, min: 0, max: 9, default: 3}",
        4,
        "columns.age.default is only allowed with missing",
    ),
    (AGE, "{type: integer, min: 0, max: 9, missing: false, default: 10}", 4, "must lie between 0 and 9"),
    (AGE, "{type: integer, min: 0, max: 9, missing: 1.5}", 4, "put this one in quotes"),
    (AGE, "{type: integer, min: 0, max: 9, expected: 0.9}", 4, "such as {missing: 0.9}"),
    (AGE, "{type: integer, min: 0, max: 9, expected: {}}", 4, "such as {missing: 0.9}"),
    (AGE, "{type: integer, min: 0, max: 9, expected: {mising: 0.9}}", 4, "did you mean 'missing'"),
    (AGE, "{type: integer, min: 0, max: 9, expected: {missing: 90}}", 4, "a share from 0 to 1"),
    (AGE, "{type: integer, min: 0, max: 9, expected: {missing: '0.9'}}", 4, "a share from 0 to 1"),
    (
        AGE,
        "{type: integer, min: 0, max: 9, expected: {other: 0.9}}",
        4,
        "use missing, first, last, one_value",
    ),
    (AGE, "{type: boolean, missing: false, expected: {missing: 1}}", 4, "use default, one_value"),
    (AGE, "{type: integer, min: 0, max: 9, missing: [x, x]}", 4, "columns.age.missing[1] lists 'x' twice"),
    (AGE, "{type: integer, min: 5, max: 5, missing: false}", 4, "has one possible value only"),
    (
        AGE,
        "{type: integr, min: 0, max: 9}",
        4,
        "columns.age.type must be one of integer, number, boolean, category, ordered, date,",
    ),
    (AGE, "{min: 0, max: 9}", 4, "columns.age.type is missing"),
    (AGE, "{type: [integer], min: 0}", 4, "columns.age.type must be one of"),
    (AGE, "integer", 4, "columns.age must be a mapping such as"),
    (
        AGE,
        "{type: integer, min: 0, max: 9, bin: 3}",
        4,
        "columns.age.bin is not a known key (did you mean 'bins'",
    ),
    (INCOME, "{type: number, min: 1, max: 1}", 6, "columns.income.min must be below max"),
    (INCOME, "{type: number, min: 0, max: .inf}", 6, "columns.income.max must be a number; nan and inf"),
    (
        INCOME,
        "{type: number, min: 0, max: 1, decimals: 0, bins: 4}",
        6,
        "columns.income.decimals leaves the bin",
    ),
    (INCOME, "{type: number, min: 0, max: 1e-9}", 6, "columns.income.bins leaves the bin"),
    (INCOME, "{type: number, min: 0, max: 1e20}", 6, "too large to be written exactly"),
    (
        INCOME,
        "{type: number, min: 1e15, max: 1000000000000000.1}",
        6,
        "columns.income.min makes bins narrower",
    ),
    (SEX, "{type: category}", 5, "columns.sex.values is missing"),
    (SEX, "{type: category, values: []}", 5, "columns.sex.values must be a list"),
    (SEX, "{type: category, values: F}", 5, "columns.sex.values must be a list"),
    (SEX, "{type: category, values: [F, M, F]}", 5, "columns.sex.values[2] repeats the category 'F'"),
    (SEX, "{type: category, values: [1, '1']}", 5, "columns.sex.values[1] repeats the category '1'"),
    (SEX, "{type: category, values: [true, false]}", 5, "put this one in quotes"),
    (SEX, "{type: category, values: [1.0, 2.0]}", 5, "put this one in quotes"),
    (SEX, "{type: category, values: [null, x]}", 5, "put this one in quotes"),
    (SEX, "{type: category, values: [010, 020]}", 5, "must be put in quotes"),
    (SEX, "{type: category, values: ['', x]}", 5, "always means missing"),
    (SEX, "{type: category, values: [' a', x]}", 5, "without spaces around it"),
    (SEX, "{type: category, values: [[a], x]}", 5, "not a list or a mapping"),
    (SEX, "{type: category, values: ['?', x], missing: '?'}", 5, "also a marker of missing cells"),
    (SEX, "{type: category, values: ['(missing)', x]}", 5, "labels missing cells"),
    (
        SEX,
        "{type: category, values: [a, b], missing: false, default: c}",
        5,
        "default must be one of the values",
    ),
    (SEX, "{type: category, values: [a, b], other: x, missing: x}", 5, "columns.sex.other must differ"),
    (SEX, "{type: category, values: [a, ?]}", 5, "put it in quotes: '?'"),
    ("{type: boolean}", "{type: boolean, values: [a]}", 7, "columns.member.values must list two texts"),
    ("{type: boolean}", "{type: boolean, values: [Y, y]}", 7, "two different texts"),
    (
        "{type: boolean}",
        "{type: boolean, missing: false, default: 2}",
        7,
        "columns.member.default must be true",
    ),
    (f"  age: {AGE}", f'  "": {AGE}', 4, "must be a name of 1 to 200 printable characters"),
]

ADDED = [
    ("columns: {}", 8, "the key columns is given twice"),
    ("colums: {}", 8, "colums is not a known key (did you mean 'columns'?)"),
    ("release: ../x", 8, "release must be a name of letters"),
    ("release: .x", 8, "release must be a name of letters"),
    ("release: x.", 8, "release must be a name of letters"),
    ("release: a/b", 8, "release must be a name of letters"),
    ("release: 2024", 8, "quote it"),
    ("release:", 8, "release has no value"),
    ("ledger: {url: mysql://x}", 8, "ledger.url must be the address of a database"),
    ("ledger: {cap: {epsilon: 0}}", 8, "ledger.cap.epsilon must be a number above 0"),
    (
        "ledger: {cap: {epsilon: 1, delta: 1}}",
        8,
        "ledger.cap.delta must be a number of at least 0 and below 1",
    ),
    ("ledger: {cap: 3}", 8, "ledger.cap must be a mapping"),
    ("ledger: {filter: rdp}", 8, "ledger.filter must be auto, sequential, zcdp or gdp"),
    ("ledger: {filter: sequental}", 8, "(did you mean 'sequential'?)"),
    ("ledger: {head: }", 8, "ledger.head has no value"),
    ("ledger: {head: 7}", 8, "ledger.head must be the path of a file; YAML reads this as a number"),
    (
        "period: month",
        8,
        "period must be a mapping of keys to values; its keys are column, every, composition",
    ),
    ("period:", 8, "period has no value"),
    ("period: {every: month}", 8, "period.column is missing: name the column that says which slice a row is"),
    (
        "period: {column: visited}",
        8,
        "period.every is missing: say how long a slice is, such as every: month",
    ),
    (
        "period: {column: 2026, every: month}",
        8,
        "period.column must be the name of a column; YAML reads this",
    ),
    ("period: {column: '', every: month}", 8, "period.column has no value"),
    (
        "period: {column: visited, every: months}",
        8,
        "period.every must be day, week, month, quarter, year or value (did you mean 'month'?)",
    ),
    ("period: {column: visited, every: 1}", 8, "period.every must be day, week, month, quarter, year or"),
    ("period: {column: visited, every: [month]}", 8, "period.every must be day, week, month, quarter, year"),
    (
        "period: {column: visited, every: month, composition: paralel}",
        8,
        "period.composition must be sequential or parallel (did you mean 'parallel'?)",
    ),
    ("period: {column: visited, every: month, of: x}", 8, "period.of is not a known key"),
    ("reuse: {same_period: true}", 8, "reuse.same_period has no use without the key period"),
    ("reuse: {same_period: 1}", 8, "reuse.same_period must be true or false"),
    ("reuse: {earlier: true}", 8, "reuse.earlier is not a known key"),
    ("reuse: true", 8, "reuse must be a mapping"),
    ("schedule: {timezone: UTC}", 8, "schedule.cron is missing: give five cron fields"),
    ("schedule: {cron: 0 3 1 * *}", 8, "schedule.timezone is missing: give a time zone"),
    ("schedule: {cron: daily, timezone: UTC}", 8, "schedule.cron must be five cron fields in quotes"),
    ("schedule: {cron: '@daily', timezone: UTC}", 8, "schedule.cron must be five cron fields in quotes"),
    ("schedule: {cron: 5, timezone: UTC}", 8, "schedule.cron must be five cron fields"),
    ("schedule: {cron: '0 0 3 1 * *', timezone: UTC}", 8, "schedule.cron must be five cron fields"),
    ("schedule: {cron: '0 24 * * *', timezone: UTC}", 8, "minute 0-59, hour 0-23, day 1-31, month 1-12, day"),
    ("schedule: {cron: '*/0 * * * *', timezone: UTC}", 8, "schedule.cron must be five cron fields"),
    ("schedule: {cron: 'H 3 * * *', timezone: UTC}", 8, "of letters it may hold names such as MON and JAN"),
    ("schedule: {cron: 'R 3 * * *', timezone: UTC}", 8, "of letters it may hold names such as MON and JAN"),
    ("schedule: {cron: '0 3 31 2 *', timezone: UTC}", 8, "schedule.cron never comes: no month that it names"),
    ("schedule: {cron: '0 3 31 4,6,9,11 *', timezone: UTC}", 8, "schedule.cron never comes: no month that"),
    (
        "schedule: {cron: 0 3 * * *, timezone: Europe/Pariss}",
        8,
        "schedule.timezone must be the name of a time zone, such as Europe/Paris or UTC; 'Europe/Pariss' is "
        "not known here (did you mean 'Europe/Paris'?)",
    ),
    ("schedule: {cron: 0 3 * * *, timezone: Europe}", 8, "'Europe' is not known here"),
    ("schedule: {cron: 0 3 * * *, timezone: localtime}", 8, "'localtime' is not known here"),
    ("schedule: {cron: 0 3 * * *, timezone: ../UTC}", 8, "schedule.timezone must be the name of a time zone"),
    ("schedule: {cron: 0 3 * * *, timezone: 2}", 8, "schedule.timezone must be the name of a time zone"),
    ("schedule: monthly", 8, "schedule must be a mapping"),
    ("schedule:", 8, "schedule has no value"),
    (
        "structure: {method: mts}",
        8,
        "structure.method must be independent, mst, privbayes, aim, one_shot, fixed or auto "
        "(did you mean 'mst'?)",
    ),
    ("structure: [mst]", 8, "structure must be a mapping"),
    ("structure: {max_model_mb: 0}", 8, "structure.max_model_mb must be a number of at least 0.001"),
    ("structure: {max_model_mb: 80MB}", 8, "structure.max_model_mb must be a number"),
    ("structure: {max_seconds: 0.5}", 8, "structure.max_seconds must be a number of at least 1"),
    ("structure: {merge_rare: -1}", 8, "structure.merge_rare must be a number of at least 0"),
    ("structure: {merge_rare: true}", 8, "structure.merge_rare must be a number"),
    ("structure: {method: fixed}", 8, "structure.cliques are missing: method fixed needs them, such as [["),
    ("structure: {method: mst, cliques: [[age, sex]]}", 8, "structure.cliques are for method: fixed only"),
    ("structure: {method: fixed, cliques: []}", 8, "structure.cliques must not be an empty list"),
    ("structure: {method: fixed, cliques: age}", 8, "structure.cliques must be a list"),
    ("structure: {method: fixed, cliques: [age]}", 8, "structure.cliques[0] must be a list"),
    ("structure: {method: fixed, cliques: [[]]}", 8, "structure.cliques[0] must list at least two columns"),
    (
        "structure:\n  method: fixed\n  cliques:\n    - [age, sex]\n    - [age]",
        12,
        "structure.cliques[1] must list at least two columns; single columns are always measured",
    ),
    ("structure: {method: fixed, cliques: [[age, age]]}", 8, "structure.cliques[0][1] repeats 'age'"),
    (
        "structure: {method: fixed, cliques: [[age, sex], [sex, age]]}",
        8,
        "structure.cliques[1] has the columns of one before it",
    ),
    (
        "structure: {method: fixed, cliques: [[age, sx]]}",
        8,
        "structure.cliques[0][1] names 'sx', which is not among columns (did you mean 'sex'?)",
    ),
    ("structure: {workload: 3}", 8, "structure.workload must be a mapping"),
    (
        "structure: {workload: {way: 3}}",
        8,
        "structure.workload.way is not a known key (did you mean 'ways'?)",
    ),
    ("structure: {workload: {ways: 1}}", 8, "structure.workload.ways must be a whole number of at least 2"),
    ("structure: {workload: {ways: 7}}", 8, "structure.workload.ways must be a whole number"),
    (
        "structure: {workload: {ways: 5}}",
        8,
        "structure.workload.ways must be at most 4, the number of columns",
    ),
    (
        "structure: {workload: {weights: {sx: 2}}}",
        8,
        "structure.workload.weights.sx names 'sx', which is not",
    ),
    ("structure: {workload: {weights: {sex: 0}}}", 8, "structure.workload.weights.sex must be a number of"),
    ("structure: {workload: {weights: [sex]}}", 8, "structure.workload.weights must be a mapping"),
    ("structure: {workload: {targets: [inc]}}", 8, "structure.workload.targets[0] names 'inc', which is not"),
    ("structure: {workload: {targets: [sex, sex]}}", 8, "structure.workload.targets[1] repeats 'sex'"),
    ("structure: {workload: {targets: sex}}", 8, "structure.workload.targets must be a list"),
    ("structure: {workload: {target_weight: 2}}", 8, "structure.workload.target_weight has no use without"),
    (
        "structure: {workload: {targets: [sex], target_weight: 0.5}}",
        8,
        "structure.workload.target_weight must be a number of at least 1",
    ),
    (
        "structure: {workload: {marginals: [{columns: [age]}]}}",
        8,
        "structure.workload.marginals[0].columns must list at least two columns",
    ),
    (
        "structure: {workload: {marginals: [{columns: [a, b, c, d, e, f, g]}]}}",
        8,
        "structure.workload.marginals[0].columns lists too many",
    ),
    (
        "structure: {workload: {marginals: [{columns: [age, age]}]}}",
        8,
        "structure.workload.marginals[0].columns[1] repeats 'age'",
    ),
    (
        "structure: {workload: {marginals: [{columns: [age, sx]}]}}",
        8,
        "structure.workload.marginals[0].columns[1] names 'sx', which is not among columns",
    ),
    (
        "structure: {workload: {marginals: [{columns: [age, sex]}, {columns: [sex, age], weight: 2}]}}",
        8,
        "structure.workload.marginals[1] has the columns of one before it",
    ),
    (
        "structure: {workload: {marginals: [{columns: [age, sex], weight: -1}]}}",
        8,
        "structure.workload.marginals[0].weight must be a number of at least",
    ),
    (
        "structure: {workload: {marginals: [{weight: 1}]}}",
        8,
        "structure.workload.marginals[0].columns is missing: list two or more",
    ),
    (
        "structure: {method: independent, workload: {ways: 2}}",
        8,
        "structure.workload has no use with method independent",
    ),
    ("sample: {rows: all}", 8, "sample.rows must be a whole number"),
    ("sample: {rows: 0}", 8, "sample.rows must be a whole number"),
    ("sample: {seed: -1}", 8, "sample.seed must be a whole number"),
    ("sample: {seed: 1.5}", 8, "sample.seed must be a whole number"),
    ("publish: {formats: []}", 8, "publish.formats must not be an empty list"),
    ("publish: {formats: csv}", 8, "publish.formats must be a list"),
    ("publish: {formats: [csv, csv]}", 8, "publish.formats[1] repeats 'csv'"),
    ("publish: {formats: [xlsx]}", 8, "publish.formats[0] must be csv, csv.gz, csv.zst or parquet"),
    (
        "publish:\n  statistics:\n    - {crosstab: [age, sx]}",
        10,
        "names 'sx', which is not among columns (did you",
    ),
    (
        "publish:\n  statistics:\n    - {crosstab: [age, age]}",
        10,
        "publish.statistics[0].crosstab[1] repeats",
    ),
    ("publish:\n  statistics:\n    - {crosstab: []}", 10, "must not be an empty list"),
    ("publish:\n  statistics:\n    - {crostab: [age]}", 10, "association, model (did you mean 'crosstab'?)"),
    ("publish:\n  statistics:\n    - crosstab", 10, "must be a mapping such as"),
    (
        "publish:\n  statistics:\n    - {mean: sex}",
        10,
        "asks for the mean of 'sex', whose values are not numbers",
    ),
    (
        "publish:\n  statistics:\n    - {mean: age, by: age}",
        10,
        "another column than the one whose numbers are used",
    ),
    (
        "publish:\n  statistics:\n    - {sum: agee}",
        10,
        "publish.statistics[0] names 'agee', which is not among columns (did you mean 'age'?)",
    ),
    (
        "publish:\n  statistics:\n    - {quantiles: sex}",
        10,
        "asks for the quantiles of 'sex', whose values are not numbers",
    ),
    (
        "publish:\n  statistics:\n    - {count: rows}",
        10,
        "publish.statistics[0].count needs where or by",
    ),
    (
        "publish:\n  statistics:\n    - {count: rows, where: age > }",
        10,
        "publish.statistics[0].where 'age >' has the end where a column, a number, a 'text' or a function",
    ),
    (
        "publish:\n  statistics:\n    - {count: rows, where: sex == 'X'}",
        10,
        "compares 'sex' with 'X', which is none of its values",
    ),
    (
        "publish:\n  statistics:\n    - {count: rows, where: agee > 3}",
        10,
        "names 'agee'",
    ),
    (
        "publish:\n  statistics:\n    - {count: rows, where: age + 3}",
        10,
        "comes to a number; it must be a comparison",
    ),
    (
        "publish:\n  statistics:\n    - {mean: age, by: [sex, sex]}",
        10,
        "publish.statistics[0].by",
    ),
    (
        "publish:\n  statistics:\n    - {mean: age, by: [a, b, c, d]}",
        10,
        "must be a column, or a list of at most 3 columns",
    ),
    (
        "publish:\n  statistics:\n    - {quantiles: age, at: [0.5, 0.2]}",
        10,
        "publish.statistics[0].at must rise",
    ),
    (
        "publish:\n  statistics:\n    - {quantiles: age, at: [1]}",
        10,
        "publish.statistics[0].at must be a number above 0 and below 1",
    ),
    (
        "publish:\n  statistics:\n    - {model: linear, target: sex, on: [age]}",
        10,
        "asks for the model of 'sex', whose values are not numbers",
    ),
    (
        "publish:\n  statistics:\n    - {model: ridge, target: age, on: [sex]}",
        10,
        "publish.statistics[0].model must be linear or logistic",
    ),
    (
        "publish:\n  statistics:\n    - {correlation: [age, sex]}",
        10,
        "asks for the correlation of 'sex', whose values are not numbers",
    ),
    (
        "publish:\n  statistics:\n    - {mean: age, of: sex}",
        10,
        "publish.statistics[0].of is not a known key",
    ),
    (
        "publish:\n  statistics:\n    - {mean: age}\n    - {mean: age}",
        11,
        "publish.statistics[1] is listed twice",
    ),
]


def message_of(load, *args, **kwargs):
    with pytest.raises(ConfigError) as caught:
        load(*args, **kwargs)
    message = str(caught.value)
    assert caught.value.exit_code == 2
    assert "\n" not in message
    for jargon in ("pydantic", "Input should", "type=", "Value error", "@", "Traceback", ".."):
        assert jargon not in message.replace("'..", "")
    return message


@pytest.mark.parametrize(("old", "new", "line", "words"), REPLACED)
def test_a_bad_value_is_refused(load_with, old, new, line, words):
    message = message_of(load_with, replace=(old, new))
    assert words in message
    assert f"small.yaml, line {line}:" in message


@pytest.mark.parametrize(("added", "line", "words"), ADDED)
def test_a_bad_section_is_refused(load_with, added, line, words):
    message = message_of(load_with, added)
    assert words in message
    assert f"small.yaml, line {line}:" in message


MONTHLY = "period: {column: visited, every: month}\n"


@pytest.mark.parametrize("composition", ["sequential", "parallel"])
def test_a_period_without_add_remove_is_refused_with_the_reason(load_with, composition):
    period = f"period: {{column: visited, every: month, composition: {composition}}}\n"
    for unit in ("row", "{column: id, max_rows: 2}"):
        privacy = f"{EPSILON}, neighbours: replace_one, unit: {unit}"
        message = message_of(load_with, period, replace=(EPSILON, privacy))
        assert (
            "small.yaml, line 2: privacy.neighbours must be add_remove with a period: how many rows"
            in message
        )
        load_with(period, replace=(EPSILON, privacy.replace("replace_one", "add_remove")))


def test_a_period_by_the_column_of_persons_is_refused(load_with):
    privacy = f"{EPSILON}, unit: {{column: visited, max_rows: 2}}"
    message = message_of(load_with, MONTHLY, replace=(EPSILON, privacy))
    assert "line 8: period.column must be another column than privacy.unit.column" in message


def test_a_schedule_for_values_that_are_named_one_by_one_is_refused(load_with):
    schedule = "schedule: {cron: 0 3 1 * *, timezone: UTC}\n"
    message = message_of(load_with, "period: {column: site, every: value}\n" + schedule)
    assert "line 9: schedule has no use with period.every: value" in message
    load_with(MONTHLY + schedule)


def test_a_cron_that_starts_with_a_star_asks_for_quotes(load_with):
    message = message_of(load_with, "schedule:\n  cron: */5 * * * *\n  timezone: UTC\n")
    assert "line 9" in message and "Put a value that starts with '*' or '&' in quotes" in message
    load_with("schedule:\n  cron: '*/5 * * * *'\n  timezone: UTC\n")


@pytest.mark.parametrize(
    ("structure", "split", "words"),
    [
        (
            "independent",
            "one_way: 0.5, structure: 0.5",
            "split.structure must be 0 with structure.method ind",
        ),
        (
            "independent",
            "one_way: 0.5, marginals: 0.5",
            "split.marginals must be 0 with structure.method ind",
        ),
        (
            "{method: fixed, cliques: [[age, sex]]}",
            "one_way: 0.3, structure: 0.1, marginals: 0.6",
            "split.structure must be 0 with structure.method fixed, which measures the cliques that",
        ),
        ("{method: fixed, cliques: [[age, sex]]}", "one_way: 1", "split.marginals must be above 0 with"),
    ],
)
def test_a_share_for_a_step_that_a_method_does_not_have_is_refused(load_with, structure, split, words):
    privacy = f"{EPSILON}, split: {{{split}}}"
    assert words in message_of(load_with, f"structure: {structure}\n", replace=(EPSILON, privacy))


def test_shares_of_the_steps_that_a_method_has_are_accepted(load_with):
    for structure, split in [
        ("independent", "one_way: 0.9"),
        ("{method: fixed, cliques: [[age, sex]]}", "one_way: 0.3, marginals: 0.7"),
        ("one_shot", "one_way: 0.3, structure: 0.1, marginals: 0.6"),
    ]:
        load_with(f"structure: {structure}\n", replace=(EPSILON, f"{EPSILON}, split: {{{split}}}"))


def test_several_problems_are_told_in_the_order_of_the_file(load_with):
    message = message_of(
        load_with, "sample: {rows: none}\nstructure: {method: tree}\n", replace=(EPSILON, "epsilon: -1")
    )
    assert "small.yaml has 3 problems. Line 2: privacy.epsilon" in message
    assert (
        message.index("Line 2")
        < message.index("Line 8: sample.rows")
        < message.index("Line 9: structure.method")
    )


def test_many_problems_are_cut_short(load_text):
    columns = "".join(f"  c{i}: {{type: integer, min: 0}}\n" for i in range(9))
    message = message_of(load_text, "source: {path: a.csv}\nprivacy: {epsilon: 1}\ncolumns:\n" + columns)
    assert "has 9 problems" in message
    assert message.endswith("And 5 more.")
    assert len(message) < 1000


def test_tables_of_too_many_cells_are_refused_where_they_are_asked_for_and_only_there(load_text):
    columns = "".join(f"  {name}: {{type: number, min: 0, max: 1, bins: 5000}}\n" for name in "ab")
    wide = f"source: {{path: a.csv}}\nprivacy: {{epsilon: 1}}\ncolumns:\n{columns}"
    for method in ("independent", "mst", "auto"):
        load_text(wide + f"structure: {method}\n")
    assert "publish.statistics[0] has 25,010,001 cells" in message_of(
        load_text, wide + "structure: independent\npublish: {statistics: [{crosstab: [a, b]}]}\n"
    )
    assert "structure.cliques[0] has 25,010,001 cells; at most 10,000,000 are allowed" in message_of(
        load_text, wide + "structure: {method: fixed, cliques: [[a, b]]}\n"
    )


def test_a_source_given_on_the_command_line_is_checked_too(load_with):
    message = message_of(load_with, source="other.xls")
    assert "other.xls" in message
    assert ".csv, .tsv, .parquet or .xlsx" in message


def test_without_a_file_messages_still_name_the_key():
    message = message_of(
        from_mapping, {"source": {"path": "a.csv"}, "privacy": {"epsilon": -1}, "columns": {}}
    )
    assert message.startswith("configuration: privacy.epsilon must be")


def test_an_accountant_that_counts_by_epsilon_is_refused_with_noise_that_has_none(load_with):
    message = message_of(load_with, replace=(EPSILON, f"{EPSILON}, accountant: sequential"))
    assert "privacy.accountant must be gdp, zcdp or auto with gaussian noise" in message
    assert "sequential needs laplace" in message


@pytest.mark.parametrize("accountant", ["advanced", "optimal", "rdp", "pld"])
def test_an_accountant_that_serves_to_compare_counts_no_release(load_with, accountant):
    message = message_of(load_with, replace=(EPSILON, f"{EPSILON}, accountant: {accountant}"))
    assert "privacy.accountant must be auto, sequential, zcdp or gdp" in message


LOCAL = f"trust: local\nprivacy: {{epsilon: 1.0}}\ncolumns:\n  age: {AGE}\n  sex: {SEX}\n"

NO_USE_WITH_LOCAL = [
    ("source: {path: t.csv}\n", "source has no use with trust: local"),
    ("period: {column: month, every: month}\n", "period has no use with trust: local"),
    ("schedule: {cron: '0 3 1 * *'}\n", "schedule has no use with trust: local"),
    ("reuse: {same_period: true}\n", "reuse has no use with trust: local"),
    ("public_table: {path: t.csv}\n", "public_table is not supported with trust: local"),
    ("public_marginals: []\n", "public_marginals are not supported with trust: local"),
    ("ledger: {cap: {epsilon: 3}}\n", "ledger.cap has no use with trust: local"),
    ("ledger: {filter: zcdp}\n", "ledger.filter has no use with trust: local"),
    ("ledger: {other_people: others, dataset: d}\n", "ledger.other_people has no use with trust: local"),
    ("structure: {merge_rare: 2}\n", "structure.merge_rare has no use with trust: local"),
    ("structure: {max_seconds: 2}\n", "structure.max_seconds has no use with trust: local"),
    ("structure: mst\n", "structure.method must be auto, independent or fixed with trust: local"),
    ("local: {protocol: coin}\n", "local.protocol must be auto, warner, two_coin, k_ary, unary or hashing"),
    ("local: {gamma: 0.2}\n", "local.gamma is for protocol: warner"),
    ("local: {protocol: warner, gamma: 0.5}\n", "local.gamma must be a number above 0 and below 0.5"),
    ("local: {ask: some}\n", "local.ask must be auto, one or all"),
    ("local: {respondents: 0}\n", "local.respondents must be a whole number"),
    ("local: {shuffled: true}\n", "local.shuffled must be a mapping"),
    ("local: {shuffled: {delta: 1}}\n", "local.shuffled.delta must be a number above 0 and below 1"),
]


@pytest.mark.parametrize(("text", "message"), NO_USE_WITH_LOCAL)
def test_a_key_without_use_in_the_local_model_is_named(text, message, tmp_path):
    with pytest.raises(ConfigError) as error:
        _local(LOCAL + text, tmp_path)
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("delta", "1.0e-9"),
        ("noise", "laplace"),
        ("neighbours", "add_remove"),
        ("unit", "{column: id, max_rows: 2}"),
        ("accountant", "sequential"),
        ("split", "{one_way: 1}"),
        ("on_empty", "go"),
    ],
)
def test_a_key_of_a_curators_privacy_is_named(key, value, tmp_path):
    text = LOCAL.replace("epsilon: 1.0", f"epsilon: 1.0, {key}: {value}")
    with pytest.raises(ConfigError, match=rf"privacy\.{key} .*with trust: local"):
        _local(text, tmp_path)


@pytest.mark.parametrize(
    ("column", "name"),
    [("{type: category, open: true}", "city"), ("{type: number, bounds: private}", "pay")],
)
def test_nothing_is_found_privately_in_the_local_model(column, name, tmp_path):
    with pytest.raises(ConfigError, match=rf"columns\.{name} must be declared with trust: local"):
        _local(f"{LOCAL}  {name}: {column}\n", tmp_path)


def test_a_local_epsilon_is_bounded(tmp_path):
    for epsilon in ("31", "0.0001"):
        with pytest.raises(ConfigError, match=r"privacy\.epsilon must be at least 0\.001 and at most 30"):
            _local(LOCAL.replace("1.0", epsilon), tmp_path)


def test_the_section_of_the_local_model_is_for_it_alone(load_with):
    with pytest.raises(ConfigError, match="local is for trust: local"):
        load_with("local: {ask: one}\n")


def _local(text, folder):
    path = folder / "local.yaml"
    path.write_text(text)
    return load(path)
