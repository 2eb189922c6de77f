"""The planted faults that show only when something is large, or second.

Each of them passes a check of few columns, rows, questions or releases. The list stands beside that of
``faults.py``, with the same form.
"""

from tests.faults.faults import FAULTS, Fault, _fault
from tests.faults.governance import GOVERNANCE
from tests.faults.linked_tables import LINKED

_WORST = (
    "guarantee/test_large_and_second.py::"
    "test_the_worst_neighbour_costs_the_price_of_a_question_of_any_size_and_no_more"
)
_MILLION = "guarantee/test_parities.py::test_a_unit_that_moves_a_million_parities_costs_the_price"
_LARGE = "guarantee/test_large_and_second.py::"
_MANY = "guarantee/test_many_rows_and_questions.py::"

LARGE: tuple[Fault, ...] = (
    _fault(
        "distances for at most 500",
        "A unit moves every distance; from 501 on noise is made for 500.",
        "Calibration.distances",
        "        each = self.near.l1\n        return self._noise(price, number * each",
        "        each, number = self.near.l1, min(number, 500)\n        return "
        "self._noise(price, number * each",
        f"{_WORST}[2_add_remove-pure_laplace-errors_of_3160]",
    ),
    _fault(
        "exam for at most 64",
        "A unit moves every distance of the exam; from 65 on noise is made for 64.",
        "DistanceQuestions.examine",
        "self._calibration.distances(price, len(cliques))",
        "self._calibration.distances(price, min(len(cliques), 64))",
        f"{_WORST}[1_replace_one-gdp_gaussian-examine_of_3160]",
    ),
    _fault(
        "wide sums cut at twice their limit",
        "From 2^20 steps on a row adds twice what the noise of a sum is made for.",
        "PrivateTable.sums.figures",
        "-centring.limit, centring.limit)",
        "*(centring.limit * (1 + (centring.limit >= 1 << 20)) * sign for sign in (-1, 1)))",
        f"{_WORST}[1_add_remove-zcdp_gaussian-sums_of_2147483647]",
    ),
    _fault(
        "sums for at most 2^20 steps",
        "A row adds up to 2^31 steps, and noise is made for 2^20.",
        "Calibration.sums",
        "moved = self.near.l1 * limit\n",
        "moved = self.near.l1 * min(limit, 1 << 20)\n",
        f"{_WORST}[1_replace_one-zcdp_laplace-sums_of_2147483647]",
    ),
    _fault(
        "errors for at most 64",
        "From 65 candidates on the distances of a strategy get the noise of 64.",
        "DistanceQuestions.errors.bought_for",
        "self._calibration.distances(price, len(candidates))",
        "self._calibration.distances(price, min(len(candidates), 64))",
        f"{_WORST}[1_replace_one-gdp_gaussian-errors_of_3160]",
    ),
    _fault(
        "parities of at most 500 sets",
        "From the 501st set on noise is made for 500.",
        "Calibration.parities",
        "        each = self.near.l1\n        return self._noise(price, number * each",
        "        each, number = self.near.l1, min(number, 500)\n        return "
        "self._noise(price, number * each",
        f"{_WORST}[1_replace_one-gdp_gaussian-parities_of_80]",
    ),
    _fault(
        "parities of at most 2^20 sets",
        "A unit moves more than a million parities, and noise is made for 2^20.",
        "CountQuestions.parities",
        "lambda price: self._calibration.parities(price, number),",
        "lambda price: self._calibration.parities(price, min(number, 1 << 20)),",
        f"{_MILLION}[1_add_remove-gdp_gaussian-4]",
    ),
    _fault(
        "parities of many columns count twice",
        "Each row counts twice in the parities of more than 64 columns.",
        "PrivateTable.parities",
        "[number_of_sets(len(columns), most)])[0]",
        "[number_of_sets(len(columns), most)])[0] * (1 + (len(columns) > 64))",
        f"{_MILLION}[1_add_remove-gdp_gaussian-4]",
    ),
    _fault(
        "persons of at most 64 rows, L1",
        "From 65 rows of a person on noise is made for 64.",
        "Neighbours.l1",
        "return self.max_rows * (2 if",
        "return min(self.max_rows, 64) * (2 if",
        f"{_WORST}[501_add_remove-pure_laplace-count_of_1]",
    ),
    _fault(
        "persons of at most 64 rows, L2",
        "From 65 rows of a person on the squared distance grows like their number.",
        "Neighbours.l2_squared",
        "return self.max_rows**2 * (2 if",
        "return self.max_rows * min(self.max_rows, 64) * (2 if",
        f"{_WORST}[501_replace_one-zcdp_gaussian-marginals_of_501]",
    ),
    _fault(
        "searches for at most 64 values",
        "A person of 65 values and more names all of them for the loss and delta of 64.",
        "Calibration.values",
        "event = self.noise.selection_within(price, delta, self.measure, self.near.l1)",
        "event = self.noise.selection_within(price, delta, self.measure, min(self.near.l1, 64))",
        f"{_LARGE}test_a_unit_that_moves_as_many_values_as_it_may_costs_the_price_of_a_search",
    ),
    _fault(
        "weights of at most 2^10",
        "A heavy candidate's score moves by its weight, and the choice is as sharp as for 2^10.",
        "Scores.sensitivity",
        "return l1 * max(1, int(self.weights[at].max()))",
        "return l1 * min(max(1, int(self.weights[at].max())), 1 << 10)",
        f"{_WORST}[1_replace_one-pure_laplace-choose_of_3160]",
    ),
    _fault(
        "weights of the first 64 candidates",
        "The sensitivity of a choice is that of its first candidates.",
        "Scores.sensitivity",
        "int(self.weights[at].max())",
        "int(self.weights[at[:64]].max())",
        f"{_WORST}[2_add_remove-zcdp_laplace-choose_of_3160]",
    ),
    _fault(
        "counts for at most 2^20 cells",
        "Marginals of more cells get half of their noise.",
        "CountQuestions._marginal",
        "drawn = self._once(_question(clique), event, lambda: self._counts.of(clique))",
        "from dataclasses import replace\n        from dpsynth.curator import samplers\n        "
        "large = self._counts.table.domain.cells(clique) > 1 << 20\n        "
        "less = replace(event, scale=event.scale / 2 if large else event.scale)\n        "
        "drawn = self._ask(_question(clique), event, lambda: self._counts.of(clique), "
        "lambda exact: samplers.add_noise(less, exact))",
        f"{_WORST}[1_replace_one-gdp_gaussian-marginals_of_many_cells_of_21]",
    ),
    _fault(
        "noise by price alone, Gaussian",
        "A second question of the same price gets the noise of the first, whatever it is moved by.",
        "gaussian_within",
        "    guess = measure.gaussian_sigma(l2_squared / (2 * float(_positive(price))))\n   "
        " return _within(price, measure, guess, lambda sigma: GaussianEvent(sigma, l2_squared))",
        "    l2_squared = _FIRST.setdefault((price, measure), l2_squared)\n    guess = "
        "measure.gaussian_sigma(l2_squared / (2 * float(_positive(price))))\n    return "
        "_within(price, measure, guess, lambda sigma: GaussianEvent(sigma, "
        "l2_squared))\n\n\n_FIRST: dict[object, int] = {}",
        f"{_WORST}[501_add_remove-zcdp_gaussian-errors_of_3160]",
    ),
    _fault(
        "noise by price alone, Laplace",
        "A second question of the same price gets the noise of the first, whatever it is moved by.",
        "laplace_within",
        "    guess = l1 / measure.laplace_epsilon(float(_positive(price)))\n    return "
        "_within(price, measure, guess, lambda scale: LaplaceEvent(scale, l1))",
        "    l1 = _FIRST.setdefault((price, measure), l1)\n    guess = l1 / "
        "measure.laplace_epsilon(float(_positive(price)))\n    return _within(price, "
        "measure, guess, lambda scale: LaplaceEvent(scale, l1))\n\n\n_FIRST: dict[object, "
        "int] = {}",
        f"{_WORST}[2_add_remove-pure_laplace-examine_of_3160]",
    ),
    _fault(
        "sharper among many",
        "A choice among more than 500 candidates runs at half of the scale on record.",
        "DistanceQuestions._chooser.pick.ask",
        "np.array(samplers.choose_index(found, event.scale))",
        "np.array(samplers.choose_index(found, event.scale / (1 + (len(found) > 500))))",
        f"{_WORST}[1_add_remove-zcdp_gaussian-choose_of_3160]",
    ),
    _fault(
        "sharper choices after the tenth",
        "Later choices in turn run at half of the scale on record.",
        "DistanceQuestions._chooser.pick.ask",
        "np.array(samplers.choose_index(found, event.scale))",
        "np.array(samplers.choose_index(found, event.scale / (1 + (len([*self._journal.asked()]) > 10))))",
        f"{_WORST}[2_add_remove-pure_laplace-choose_in_turn_of_65]",
    ),
    _fault(
        "medians of many runs",
        "From 65 runs on all medians together are drawn at half of the scale on record.",
        "DomainQuestions.medians.ask.draw",
        "run[0] + samplers.choose_index(part, event.scale)",
        "run[0] + samplers.choose_index(part, event.scale / (1 + (len(runs) > 64)))",
        f"{_WORST}[1_replace_one-gdp_gaussian-medians_of_501]",
    ),
    _fault(
        "ranks of far runs count twice",
        "A row of a run beyond the 128th cut moves scores by two.",
        "_balances",
        "return np.concatenate([-np.abs(below[b - 1] + below[a] - 2 * below[a:b]) for a, b in runs])",
        "return np.concatenate(\n        [-np.abs(below[b - 1] + below[a] - 2 * below[a:b]) "
        "* (1 + (a > 128)) for a, b in runs]\n    )",
        f"{_WORST}[2_add_remove-pure_laplace-medians_of_501]",
    ),
    _fault(
        "far cells count twice",
        "A row in a cell of a found domain beyond the 500th counts twice.",
        "DomainQuestions.counts_under.exact",
        "np.add.at(counts, found[found != INVALID], texts.rows[found != INVALID])",
        "np.add.at(counts, found[found != INVALID], texts.rows[found != INVALID] * (1 + "
        "(found > 500))[found != INVALID])",
        f"{_WORST}[1_replace_one-gdp_gaussian-counts_under_of_8192]",
    ),
    _fault(
        "many pieces count twice",
        "Each row counts twice where there are more than 500 pieces.",
        "PrivateTable.finer_counts.figures",
        "cell[code < pieces.bins], minlength=groups * number).astype(np.int64)",
        "cell[code < pieces.bins], minlength=groups * number).astype(np.int64) * (1 + (number > 500))",
        f"{_WORST}[2_add_remove-zcdp_laplace-finer_counts_of_131072]",
    ),
    _fault(
        "the exam's later distances undivided",
        "From the 65th distance on a unit moves the exam by as many as the finished table has rows.",
        "DistanceQuestions._exact",
        "found.append(_sum(apart) // rows)",
        "found.append(_sum(apart) // (rows if len(found) < 64 else 1))",
        f"{_WORST}[1_add_remove-zcdp_gaussian-examine_of_3160]",
    ),
    _fault(
        "later distances count twice",
        "From the 501st distance on a unit moves a strategy's distances twice as far.",
        "Distances.of",
        "self._computed |= {c: _distance(self._counts.of(c), guesses[c]) for c in batch}",
        "self._computed |= {\n                c: _distance(self._counts.of(c), guesses[c]) "
        "* (1 + (len(self._computed) + i >= 500))\n                for i, c in "
        "enumerate(batch)\n            }",
        f"{_WORST}[1_add_remove-zcdp_gaussian-errors_of_3160]",
    ),
    _fault(
        "persons of many rows in two cells",
        "A person of more than 64 rows counts in the last cell once more.",
        "LoadedRows.rows_of_units",
        "return np.bincount(ranges, minlength=len(first)).astype(np.int64, copy=False)",
        "found = np.bincount(ranges, minlength=len(first)).astype(np.int64, copy=False)\n   "
        "     found[-1] += (ranges > 64).sum()\n        return found",
        f"{_LARGE}test_a_person_of_any_number_of_rows_stands_in_one_cell_of_many",
    ),
    _fault(
        "a chosen bound of at most 64",
        "A bound above 64 that was found is kept, and sensitivities are those of 64.",
        "UnboundedCurator.bounded",
        "near = replace(self._terms.neighbours, max_rows=max_rows)",
        "near = replace(self._terms.neighbours, max_rows=min(max_rows, 64))",
        f"{_LARGE}test_a_person_of_more_rows_than_the_bound_that_was_chosen_costs_the_price",
    ),
    _fault(
        "rows of a person beyond the 200th enter",
        "The bound forgets the rows of a person beyond a number.",
        "_beyond",
        "position >= max_rows",
        "(position >= max_rows) & (position < 200)",
        f"{_LARGE}test_a_person_of_more_rows_than_the_bound_that_was_chosen_costs_the_price",
    ),
    _fault(
        "units of many rows counted by row",
        "A person counts once for each row with a value where there are more than 500 rows of it.",
        "Texts.counts",
        "each = np.bincount(pairs // units, minlength=texts).astype(np.int64, copy=False)",
        "each = np.bincount(pairs // units, minlength=texts).astype(np.int64, copy=False)\n "
        "       each = np.where(rows > 500, rows, each)",
        f"{_MANY}test_one_text_after_many_counts_once",
    ),
    _fault(
        "the second tier's allowance twice",
        "What is kept for later tiers may be spent twice.",
        "Curator.keeping",
        "twin._terms = replace(self._terms, kept=kept)",
        "twin._terms = replace(self._terms, kept=kept, budget=self._terms.budget + self._terms.kept)",
        f"{_MANY}test_every_one_of_many_questions_counts_against_the_budget",
    ),
    _fault(
        "only the first 500 charges",
        "From the 501st question on nothing is counted against the budget.",
        "PrivacyFilter._spent",
        "for entry in islice(entries, self._summed, None):",
        "for entry in islice(entries, self._summed, 500):",
        f"{_MANY}test_every_one_of_many_questions_counts_against_the_budget",
    ),
    _fault(
        "only the last delta",
        "Of several searches the last one's delta counts.",
        "PrivacyFilter._delta_left",
        "sum(entry.event.delta for entry in self._journal.asked())",
        "sum(entry.event.delta for entry in list(self._journal.asked())[-1:])",
        f"{_MANY}test_every_one_of_many_searches_counts_against_the_delta",
    ),
    _fault(
        "deltas by the largest",
        "Of several searches the dearest one's delta is published.",
        "approximate_delta_of",
        "return sum((e.delta for e in events), Fraction(0))",
        "return max((e.delta for e in events), default=Fraction(0))",
        f"{_MANY}test_every_one_of_many_events_counts_in_the_guarantee_and_in_the_ledger",
    ),
    _fault(
        "a guarantee of the first 500 answers",
        "Answers beyond the 500th are not in the published epsilon.",
        "amount_of",
        "    found = list(events)\n    total, approximate_delta = (",
        "    found = list(events)[:500]\n    total, approximate_delta = (",
        f"{_MANY}test_every_one_of_many_events_counts_in_the_guarantee_and_in_the_ledger",
    ),
    _fault(
        "a cost of the first 500 answers",
        "Answers beyond the 500th are not in the ledger.",
        "spent",
        "    found = list(events)\n    rho",
        "    found = list(events)[:500]\n    rho",
        f"{_MANY}test_every_one_of_many_events_counts_in_the_guarantee_and_in_the_ledger",
    ),
    _fault(
        "a ledger of the last 500 releases",
        "The filter forgets the releases before the last 500.",
        "total_of",
        "    for release in counted:\n        spent",
        "    for release in list(counted)[-500:]:\n        spent",
        f"{_MANY}test_every_one_of_many_releases_counts_in_the_ledger_about_all_rows_a_period_or_a_value",
    ),
    _fault(
        "a second release of a period is free",
        "Releases about the same days count as one.",
        "total_of",
        "            columns.setdefault(_axis(release.part), []).append((release.part, spent))",
        "            if (release.part, spent) not in "
        "columns.setdefault(_axis(release.part), []):\n                "
        "columns[_axis(release.part)].append((release.part, spent))",
        f"{_MANY}test_every_one_of_many_releases_counts_in_the_ledger_about_all_rows_a_period_or_a_value",
    ),
    _fault(
        "a second release of a value is free",
        "Of several releases about one value the dearest counts.",
        "_most_at_a_value",
        "sums[value] = plus(sums[value], spent) if value in sums else spent",
        "sums[value] = max(sums[value], spent) if value in sums else spent",
        f"{_MANY}test_every_one_of_many_releases_counts_in_the_ledger_about_all_rows_a_period_or_a_value",
    ),
    _fault(
        "the same noise every 2^16 cells",
        "Cells of a large marginal share their noise, which their difference takes off.",
        "add_in_bulk",
        "        noisy[start : start + len(part)] = _saturating_sum(part, _draw(table, "
        "len(part), _system_words))",
        "        drawn = _draw(table, len(part), _system_words) if not start else drawn\n   "
        "     noisy[start : start + len(part)] = _saturating_sum(part, drawn[: len(part)])",
        f"{_MANY}test_every_part_of_an_answer_of_a_million_cells_has_noise_of_its_own",
    ),
    _fault(
        "cells beyond 2^20 without noise",
        "The last cells of a very large marginal are exact.",
        "add_in_bulk",
        "    for start in range(0, len(exact), _CELLS_A_CHUNK):",
        "    noisy[:] = exact\n    for start in range(0, min(len(exact), 1 << 20), _CELLS_A_CHUNK):",
        f"{_MANY}test_every_part_of_an_answer_of_a_million_cells_has_noise_of_its_own",
    ),
    _fault(
        "wide scales by OpenDP halved",
        "Noise of a scale that is too large for bulk draws is half of what is charged.",
        "add_gaussian",
        "_gaussian(sigma)(values.ravel())",
        "_gaussian(sigma if sigma < 50_000 else sigma / 2)(values.ravel())",
        f"{_MANY}test_every_part_of_an_answer_of_a_million_cells_has_noise_of_its_own",
    ),
    _fault(
        "blocks of rows overlap",
        "A row at the end of each 65 536 counts twice.",
        "blocks",
        "yield slice(start, min(start + long, rows))",
        "yield slice(start - (start > 0), min(start + long, rows))",
        f"{_MANY}test_one_row_after_many_moves_each_answer_by_itself",
    ),
    _fault(
        "a second thread counts its rows twice",
        "Rows of a large table move answers twice as far as declared.",
        "added_up",
        "    return [np.sum(parts, axis=0) for parts in zip(*shares, strict=True)]",
        "    return [np.sum(parts, axis=0) + parts[1] for parts in zip(*shares, strict=True)]",
        f"{_MANY}test_one_row_after_many_moves_each_answer_by_itself",
    ),
    _fault(
        "counts kept in a byte",
        "The 256th row of a cell takes its count to 0.",
        "ExactCounts._type",
        "return np.min_scalar_type(self.table.largest)",
        "return np.min_scalar_type(min(self.table.largest, 255))",
        f"{_MANY}test_one_row_after_many_moves_each_answer_by_itself",
    ),
    _fault(
        "texts of the second piece twice",
        "Rows whose text is not among the first 4 096 count twice.",
        "DomainQuestions.counts_under.exact",
        "            counts = np.zeros(len(codec.labels), dtype=np.int64)",
        "            counts = np.zeros(len(codec.labels), dtype=np.int64)\n            "
        "np.add.at(counts, np.maximum(found[4096:], 0), texts.rows[4096:])",
        f"{_MANY}test_one_text_after_many_counts_once",
    ),
    _fault(
        "the same coins every 2^16 rows",
        "Rows a block apart are in the sample together.",
        "UnitSample._coins",
        'self.key + _ROWS + block.to_bytes(_BYTES, "big")',
        'self.key + _ROWS + (0 * block).to_bytes(_BYTES, "big")',
        f"{_MANY}test_coins_of_rows_and_persons_are_independent_however_many_there_are",
    ),
    _fault(
        "values of a thousand units for certain",
        "A value is named for certain from a number of units on, before its loss allows it.",
        "chances_at",
        "            settled = chance == before",
        "            settled = chance == before or n >= 1000\n            chance = _ONE if "
        "n >= 1000 else chance",
        f"{_MANY}test_values_of_many_units_are_named_within_the_loss_of_each_step",
    ),
    _fault(
        "many groups kept in a byte",
        "Groups beyond the 256th are taken for others, and a distance is that of another table.",
        "PrivateTable.recoded",
        "column: groups.astype(np.min_scalar_type(domain.sizes[column] - 1))",
        "column: groups.astype(np.uint8)",
        f"{_MANY}test_a_row_of_the_last_of_many_groups_moves_one_cell_and_one_distance",
    ),
    _fault(
        "a digest of the first 500 answers",
        "What is changed in later answers of a journal is not noticed.",
        "Journal.digest",
        "        for entry in self.entries:\n            lost",
        "        for entry in self.entries[:500]:\n            lost",
        f"{_MANY}test_a_journal_of_many_questions_is_read_again_to_its_last_answer",
    ),
    _fault(
        "recorded answers beyond the 500th drawn again",
        "A resumed release has a second noise for its late questions.",
        "Journal.answer",
        '        return cast("Answer | Lost", entry.outcome)',
        '        return draw() if seq >= 500 else cast("Answer | Lost", entry.outcome)',
        f"{_MANY}test_a_journal_of_many_questions_is_read_again_to_its_last_answer",
    ),
    _fault(
        "bits of many reports as they are",
        "Beyond the first 2^22 bits a respondent's own bit is set for certain.",
        "UnaryEncoding.randomise",
        "bits[np.arange(part.size), part] = coins(self.own, part.size)",
        "bits[np.arange(part.size), part] = coins(self.own, part.size) | (start > 0)",
        "wings/local/randomisers/test_randomisers.py::"
        "test_bits_of_many_cells_have_the_probabilities_that_are_stated_to_the_last_report",
    ),
    _fault(
        "truth among many cells",
        "Among more than 64 cells a respondent lies half as often as is stated.",
        "DirectResponse.own",
        "        return 1 - self.lie + self.lie / self.cells",
        "        return 1 - self.lie / (1 + (self.cells > 64)) + self.lie / self.cells",
        "wings/local/randomisers/test_randomisers.py::test_the_privacy_loss_among_many_cells_is_the_one_stated",
    ),
    _fault(
        "third tier with the budget of the last",
        "From the third audience on each has the answers that the last one pays for.",
        "tiers_of",
        "budget = measure.budget(epsilon, None if delta is None else delta - selection)",
        "budget = measure.budget(epsilon if len(found) < 2 else promises[-1].epsilon, "
        "None if delta is None else delta - selection)",
        "guarantee/test_audiences.py::"
        "test_a_third_and_a_fourth_audience_reach_their_own_epsilon_and_none_exceeds_it",
    ),
    _fault(
        "charged for at most 500 distances",
        "The noise is that of all distances, and what stands in the journal costs less than they tell.",
        "PrivacyFilter._noisy.ask",
        "return self._ask(question, bought.event, exact,",
        "event = type(bought.event)(bought.scale, min(bought.event.l2_squared, 500))\n            "
        "return self._ask(question, event, exact,",
        f"{_WORST}[1_replace_one-gdp_gaussian-errors_of_3160]",
    ),
)

ALL = (*FAULTS, *LARGE, *GOVERNANCE, *LINKED)
"""Every planted fault."""
