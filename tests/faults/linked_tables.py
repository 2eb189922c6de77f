"""Planted faults of linked tables: what a root moves, whose rows are whose, and what is made of them."""

from tests.faults.faults import Fault

_TESTS = "tests/wings/tables/"
_WIDE = f"{_TESTS}test_wide_rows.py::"


def _fault(name: str, breaks: str, where: str, old: str, new: str, test: str) -> Fault:
    whole = where if where.startswith("dpsynth.") else f"dpsynth.wings.tables.{where}"
    return Fault(name, breaks, whole, old, new, (test,))


LINKED: tuple[Fault, ...] = (
    _fault(
        "children of the next household",
        "Rows of one household stand in the wide row of another, and tell of it.",
        "wide_rows.WideTable._cells",
        "first[rows] + place",
        "first[rows] + place + 1",
        f"{_WIDE}test_children_stand_in_their_order_and_only_the_first_are_used",
    ),
    _fault(
        "a parent by its place",
        "Rows without a parent go to some household, so who is in the table moves the rows of others.",
        "wide_rows.WideTable._belonging",
        "known[at] == whose",
        "known[at] >= 0",
        f"{_WIDE}test_rows_of_nobody_and_of_no_parent_are_left_out",
    ),
    _fault(
        "a household for each spelling",
        "A household whose key is there twice has two wide rows, and is protected as one.",
        "wide_rows._firsts_of",
        "np.unique(codes, return_index=True)",
        "codes, np.arange(len(codes))",
        f"{_WIDE}test_a_household_that_comes_or_goes_moves_one_row",
    ),
    _fault(
        "all without a key are one household",
        "Rows of nobody are counted.",
        "wide_rows._firsts_of",
        "codes[first] != without",
        "codes[first] >= 0",
        f"{_WIDE}test_a_household_that_comes_or_goes_moves_one_row",
    ),
    _fault(
        "one of the others by its place in the file",
        "The member that stands for further ones follows from households in front, which so move its row.",
        "wide_rows.WideTable._cells",
        "loaded.chance[rows] % further",
        "rows.astype(np.uint64) % further",
        "tests/guarantee/test_linked_tables_by_replay.py::"
        "test_a_household_moves_no_answer_by_more_than_one_row_would",
    ),
    _fault(
        "rows of a join",
        "A household has two wide rows, under two keys, and is charged as if it had one.",
        "wide_rows.WideTable.batches",
        "yield {c: found[c] if c in found else whole.cells[c].take(pa.array(rows)) for c in columns}",
        "one = {c: found[c] if c in found else whole.cells[c].take(pa.array(rows)) for c in columns}; "
        "yield from (one, {**one, key: pa.array(rows).cast(pa.string())})",
        "tests/wings/proof/audit/test_linked_tables.py::"
        "test_files_of_linked_tables_are_audited_and_most_of_the_budget_is_seen",
    ),
    _fault(
        "keys are joined without a mark",
        "Households of two towns are one, and each moves the other's row.",
        "wide_rows._canonical",
        '.replace("|", "||")',
        "",
        f"{_WIDE}test_parts_of_a_key_are_not_mixed_up",
    ),
    _fault(
        "a row between two roots",
        "A row below the second level says by a key of its own whose it is, so two roots may share it.",
        "keys._tree",
        "of_parent[: len(higher.key)] != higher.key",
        "False",
        f"{_TESTS}test_keys.py::test_what_is_refused_is_named_by_its_own_key",
    ),
    _fault(
        "a unit of the child table",
        "A member is protected, and it is said that a household is.",
        "keys._privacy",
        'given.get("unit", root) != root',
        "False",
        f"{_TESTS}test_keys.py::test_other_keys_that_do_not_go_with_tables",
    ),
    _fault(
        "exchanged households",
        "The number of wide rows is taken for public, and keys decide it.",
        "keys._privacy",
        'given.get("neighbours", "add_remove") != "add_remove"',
        "False",
        f"{_TESTS}test_keys.py::test_other_keys_that_do_not_go_with_tables",
    ),
    _fault(
        "a rehearsal of the private tables",
        "A rehearsal reads private rows, charges nothing, and is shown around.",
        "dpsynth.pipeline.inputs.table_of_rows",
        " and source.elsewhere",
        "",
        "tests/release/test_linked_tables.py::test_a_rehearsal_reads_none_of_the_tables",
    ),
    _fault(
        "one of the private tables as the public one",
        "Exact counts of the root's table enter the release as evidence.",
        "dpsynth.pipeline.inputs.check_public_table",
        "for own in spec.sources if own.path",
        "for own in (spec.source,) if own.path",
        "tests/release/test_linked_tables.py::test_no_private_table_is_a_public_one_or_the_folder_of_bundles",
    ),
    _fault(
        "children without end",
        "A synthetic household has more members than the configuration allows.",
        "splitting._place",
        "pc.fill_null(own.taken(wide, child.name), 0).to_numpy(), child.most",
        "pc.fill_null(own.taken(wide, child.name), 0).to_numpy(), child.most + 1",
        f"{_TESTS}test_splitting.py::test_every_row_has_its_parent_and_none_has_too_many",
    ),
    _fault(
        "whose children they are",
        "Synthetic members stand in another household.",
        "splitting._place",
        "own.row[owner]",
        "own.row[owner][::-1]",
        f"{_TESTS}test_splitting.py::test_tables_come_back_with_new_keys",
    ),
    _fault(
        "tables that nobody compares",
        "verify calls a bundle good whose tables have other rows than the synthetic table.",
        "splitting._differing",
        "_content(path) != _content(Path(folder) / file)",
        "False",
        "tests/release/test_linked_tables.py::test_other_rows_in_a_table_are_found[csv]",
    ),
    _fault(
        "a root too many",
        "A sample has a row at the root that nobody asked for.",
        "recipients.sampled_tables",
        "table[first[name]], number)",
        "table[first[name]], number + 1)",
        f"{_TESTS}test_recipients.py::test_new_roots_come_with_all_that_belongs_to_them",
    ),
    _fault(
        "the error of one row for that of all",
        "Intervals about child rows are too narrow: they have the error of one of the rows beside.",
        "questions._Together.reach",
        "sum(",
        "max(",
        f"{_TESTS}test_questions.py::test_rows_in_all_places_are_put_together_and_so_are_their_errors",
    ),
    _fault(
        "rows of no one",
        "Child rows that aren't there are counted, as rows with missing cells.",
        "questions._by_columns",
        "_present(asked, place) if own else None",
        "None",
        f"{_TESTS}test_questions.py::test_the_private_figure_is_within_half_again_the_interval",
    ),
    _fault(
        "minors of the household next door",
        "What is counted of child rows belongs to other rows above.",
        "questions._Asked.up",
        "[self.split.placed[table].owner]",
        "[self.split.placed[table].owner[::-1]]",
        f"{_TESTS}test_questions.py::test_what_is_counted_in_the_tables_is_what_pandas_counts",
    ),
)
