"""The list of planted faults.

Each is one mistake in the product, as a piece of a file and what stands in its place, and the tests that
notice it. Pieces are short, so that the list survives when code moves: then change ``file``, and names.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Fault:
    """A mistake that would break a promise.

    Attributes:
        name: a few words, unique.
        breaks: the consequence, in one sentence.
        file: the file, from the root of the project.
        old: a piece of it that occurs once.
        new: what stands there with the fault.
        tests: ids of tests, at least one of which fails with the fault.
    """

    name: str
    breaks: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]


def _fault(name: str, breaks: str, file: str, old: str, new: str, *tests: str) -> Fault:
    return Fault(name, breaks, f"dpsynth/{file}", old, new, tuple(f"tests/{test}" for test in tests))


_SHOWN_ONCE_SETTLED = (
    "release/test_kills.py::"
    "test_a_release_killed_between_its_settlement_and_its_appearance_appears_as_it_was_written"
)

FAULTS: tuple[Fault, ...] = (
    # noise
    _fault(
        "Gaussian noise x 0.7",
        "Answers tell about twice the rho that is charged.",
        "curator/noise.py",
        "_gaussian(sigma)(values.ravel())",
        "_gaussian(0.7 * sigma)(values.ravel())",
        "guarantee/test_noise.py::test_draws_follow_the_exact_discrete_distribution",
    ),
    _fault(
        "Laplace noise x 0.7",
        "Answers tell 1.4 times the epsilon that is charged.",
        "curator/noise.py",
        "_laplace(scale)(values.ravel())",
        "_laplace(0.7 * scale)(values.ravel())",
        "guarantee/test_noise.py::test_draws_follow_the_exact_discrete_distribution",
    ),
    _fault(
        "bulk noise x 0.7",
        "Answers of many cells tell more than is charged.",
        "curator/bulk_noise.py",
        "table = _table(kind, float(scale))",
        "table = _table(kind, 0.7 * float(scale))",
        "guarantee/test_bulk_noise.py::test_draws_follow_the_exact_distribution",
    ),
    _fault(
        "one sign only",
        "Noise in bulk is never negative, so counts give away a lower bound.",
        "curator/bulk_noise.py",
        "signed: Counts = (size ^ -negative) + negative",
        "signed: Counts = size + 0 * negative",
        "guarantee/test_bulk_noise.py::test_draws_follow_the_exact_distribution",
    ),
    _fault(
        "seeded noise",
        "Noise that can be drawn again can be taken off.",
        "curator/bulk_noise.py",
        "np.frombuffer(os.urandom(8 * number), dtype=np.uint64)",
        "np.random.default_rng(7).integers(0, 2**64 - 1, number, dtype=np.uint64)",
        "guarantee/test_bulk_noise.py::test_draws_follow_the_exact_distribution",
    ),
    _fault(
        "no noise drawn",
        "Exact counts are published.",
        "curator/terms.py",
        "return adding[self.bought.noise](exact, self.bought.scale)",
        "return exact",
        "guarantee/test_noise.py::test_a_curator_adds_the_noise_that_its_journal_charges_for",
    ),
    _fault(
        "exponential mechanism without its factor 2",
        "A choice among scores that move either way is charged half of its epsilon.",
        "accounting/events.py",
        "return 2 * Fraction(self.sensitivity) / Fraction(self.scale)",
        "return Fraction(self.sensitivity) / Fraction(self.scale)",
        "accounting/test_events.py::test_the_factor_two_of_the_exponential_mechanism_is_not_dropped",
    ),
    _fault(
        "sharper choices than charged",
        "The exponential mechanism runs at half of the scale on record.",
        "curator/noise.py",
        "int(_gumbel_max(scale)(scores))",
        "int(_gumbel_max(scale / 2)(scores))",
        "guarantee/test_selection.py::test_choices_follow_the_exponential_mechanism",
    ),
    # sensitivity
    _fault(
        "person counted as a row",
        "Rows of one person move an answer further than its noise is made for.",
        "accounting/neighbours.py",
        "return self.max_rows * (2 if",
        "return 1 * (2 if",
        "accounting/test_neighbours.py::test_the_stated_sensitivities_are_reached_and_never_exceeded",
    ),
    _fault(
        "replaced rows as added ones, L1",
        "An exchanged row moves two cells, and noise is made for one.",
        "accounting/neighbours.py",
        "return self.max_rows * (2 if",
        "return self.max_rows * (1 if",
        "accounting/test_neighbours.py::test_the_stated_sensitivities_are_reached_and_never_exceeded",
    ),
    _fault(
        "L2 of a person's rows as their root",
        "Rows of one person that fall into one cell move it by k, not by the root of k.",
        "accounting/neighbours.py",
        "return self.max_rows**2 * (2 if",
        "return self.max_rows * (2 if",
        "accounting/test_neighbours.py::test_the_stated_sensitivities_are_reached_and_never_exceeded",
    ),
    _fault(
        "noisy errors as one distance",
        "A unit moves every distance, and noise is made for one.",
        "accounting/calibration.py",
        "number * each, number * each**2",
        "each, each**2",
        "guarantee/test_noisy_errors.py::test_no_neighbour_of_any_small_table_moves_the_distances_further_than_declared_and_some_move_them_so_far",
    ),
    _fault(
        "sums that move as counts do, in squared L2",
        "An exchanged row may move one sum by twice its limit, and noise is made for two moves by it.",
        "accounting/calibration.py",
        "price, moved, moved**2,",
        "price, moved, self.near.l2_squared * limit**2,",
        "guarantee/test_sums.py::test_no_neighbour_of_any_small_table_moves_the_sums_further_than_declared_and_some_move_them_so_far",
    ),
    _fault(
        "numbers beyond the limit of a sum",
        "A row adds more to a sum than its noise is made for.",
        "curator/table.py",
        "-centring.limit, centring.limit)",
        "-(1 << 31), 1 << 31)",
        "guarantee/test_sums.py::test_a_row_adds_at_most_the_limit_however_far_it_is_from_its_offset",
    ),
    _fault(
        "sums for half of their noise",
        "A sum tells twice the epsilon that is charged.",
        "curator/sum_questions.py",
        "noised = self._terms.sums(price, centring.limit)",
        "noised = self._terms.sums(price, (centring.limit + 1) // 2)",
        "guarantee/test_sums.py::test_no_neighbour_of_any_small_table_moves_the_sums_further_than_declared_and_some_move_them_so_far",
    ),
    _fault(
        "replaced persons counted as one",
        "An exchanged person moves two numbers of persons, and noise is made for one.",
        "accounting/calibration.py",
        "return replace(self, near=self.near.counted_once)",
        'return replace(self, near=replace(self.near.counted_once, relation="add_remove"))',
        "guarantee/test_contributions.py::test_one_person_moves_the_counts_as_far_as_is_charged_whatever_the_bound_in_the_terms",
    ),
    _fault(
        "exact number of rows of persons",
        "The number of rows is private where a person may bring more or fewer, and would be published.",
        "accounting/neighbours.py",
        'return self.relation == "replace_one" and self.person is None',
        'return self.relation == "replace_one"',
        "accounting/test_neighbours.py::test_the_number_of_rows_is_public_exactly_where_no_neighbour_changes_it",
    ),
    _fault(
        "exact number of rows",
        "The number of rows is published as it is under add_remove too.",
        "curator/marginals.py",
        "        if self._terms.neighbours.rows_public:",
        "        if self._terms.neighbours.max_rows:",
        "curator/test_door.py::test_the_number_of_rows_is_free_and_exact_only_where_the_relation_fixes_it",
    ),
    _fault(
        "estimates stretched over a marginal",
        "A guess of another shape counts each row several times, so a distance moves further than declared.",
        "curator/scores.py",
        "if guess.shape != counts.shape:",
        "if guess.size > counts.size:",
        "curator/test_door.py::test_an_estimate_of_another_shape_is_refused_rather_than_stretched",
    ),
    _fault(
        "warnings by exact counts",
        "Words, exit code and pause of a release depend on the table by another way than a charged answer.",
        "lifecycle/pausing.py",
        "stage.layout.columns, answers.first, found",
        "stage.layout.columns, [type(m)(m.clique, stage.curator._counts.of(m.clique), m.noise, m.scale) "
        "for m in answers.first], found",
        "guarantee/test_warnings_of_neighbours.py::"
        "test_a_neighbour_with_the_same_answers_is_warned_and_paused_in_the_same_bytes",
    ),
    # contribution bounds
    _fault(
        "person bound forgotten",
        "All rows of a person enter, however many.",
        "curator/loading.py",
        "kept = rows_kept(everyone, max_rows, key)",
        "kept = np.ones(len(everyone), dtype=np.bool_)",
        "guarantee/test_replay_on_neighbours.py::test_a_neighbour_changes_nothing_but_answers_and_those_within_the_declared_sensitivity"
        "[add_remove-person-gaussian]",
    ),
    _fault(
        "one row too many of each person",
        "A person moves answers by k + 1.",
        "curator/contribution_bounding.py",
        "position >= max_rows",
        "position > max_rows",
        "curator/test_bounding.py::test_at_most_k_rows_of_each_person_are_kept_and_all_where_there_are_no_more",
    ),
    _fault(
        "a person's rows by their place",
        "The rows of a person that are kept depend on where other people's rows stand.",
        "curator/contribution_bounding.py",
        "salts = rank[crowded]",
        "salts = order[crowded]",
        "curator/test_bounding.py::test_adding_removing_or_changing_a_person_leaves_everybody_elses_rows_as_they_were",
    ),
    _fault(
        "spellings are persons",
        "A person under two spellings of one id has twice the rows.",
        "curator/contribution_bounding.py",
        "canonical_id(t).encode()",
        '(t or "").encode()',
        "curator/test_bounding.py::test_variants_of_an_id_are_one_person",
    ),
    # charges and the journal
    _fault(
        "charge after the draw",
        "A kill between draw and charge leaves an answer that nobody paid for.",
        "curator/journal.py",
        '            self._append({"kind": "charge", "seq": seq, "question": question, '
        '"event": events.to_json(event)})\n',
        '            draw()\n            self._append({"kind": "charge", "seq": seq, "question": question, '
        '"event": events.to_json(event)})\n',
        "curator/test_journal.py::test_a_charge_is_on_disk_before_its_noise_is_drawn_and_the_answer_before_it_is_seen",
    ),
    _fault(
        "lost answer drawn again",
        "An answer that may have been seen is drawn a second time for one charge.",
        "curator/journal.py",
        "            entry.outcome = LOST\n        self._cursor += 1",
        "            entry.outcome = draw()\n        self._cursor += 1",
        "curator/test_journal.py::test_after_the_record_ends_new_questions_are_charged_and_drawn",
    ),
    _fault(
        "recorded answers drawn again",
        "A resumed release has a second noise for each of its questions.",
        "curator/journal.py",
        'return cast("Answer | Lost", entry.outcome)',
        "return draw()",
        "curator/test_journal.py::test_a_journal_read_again_gives_identical_answers_without_drawing",
    ),
    _fault(
        "journal not synced",
        "After a failure of power, answers are known that the journal has not.",
        "curator/journal.py",
        "        os.fsync(self._file.fileno())",
        "        pass",
        "curator/test_journal.py::test_each_line_is_synced_before_the_next_step",
    ),
    _fault(
        "another question takes the recorded answer",
        "With another config a resumed release puts answers to questions that were never asked.",
        "curator/journal.py",
        "if (entry.question, entry.event) != (question, event):",
        "if False:",
        "curator/test_journal.py::test_another_question_or_price_than_the_recorded_one_is_refused",
    ),
    _fault(
        "sealed journal goes on",
        "A release that the ledger has closed draws without a reservation.",
        "curator/journal.py",
        "            if self.sealed:",
        "            if False:",
        "curator/test_journal.py::test_a_release_that_the_ledger_has_closed_answers_from_its_record_and_draws_nothing_more",
    ),
    _fault(
        "journal without a lock",
        "Two processes resume one release and draw two noises for a charge.",
        "curator/journal.py",
        "fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)",
        "fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)",
        "curator/test_journal.py::test_a_second_process_is_refused_until_the_first_lets_go",
    ),
    _fault(
        "charge halved in memory",
        "A release spends twice its budget.",
        "curator/privacy_filter.py",
        "self._sum += self._terms.measure.cost(entry.event)",
        "self._sum += self._terms.measure.cost(entry.event) / 2",
        "curator/test_door.py::test_the_budget_is_never_exceeded_whatever_is_asked_and_whatever_is_lost",
    ),
    _fault(
        "budget not checked",
        "Questions beyond the budget are answered.",
        "curator/privacy_filter.py",
        "over = self._terms.measure.cost(event) > self.remaining",
        "over = False",
        "curator/test_door.py::test_the_budget_is_never_exceeded_whatever_is_asked_and_whatever_is_lost",
    ),
    _fault(
        "lost answers given back",
        "What was drawn and lost is not counted.",
        "curator/privacy_filter.py",
        "for entry in islice(entries, self._summed, None):",
        "for entry in (e for e in islice(entries, self._summed, None) if not isinstance(e.outcome, Lost)):",
        "curator/test_door.py::test_the_budget_is_never_exceeded_whatever_is_asked_and_whatever_is_lost",
    ),
    _fault(
        "delta of values not checked",
        "Values are named with more delta than the release has.",
        "curator/privacy_filter.py",
        "if over or (event.delta > 0 and event.delta > self._delta_left()):",
        "if over:",
        "curator/test_domain_questions.py::test_values_are_refused_before_they_are_drawn_where_the_delta_of_the_release_is_spent",
    ),
    _fault(
        "a constant bounding key",
        "Who knows the key can see to it which rows of a person enter each release.",
        "lifecycle/beginning.py",
        '"key": secrets.token_hex(32)',
        '"key": "00" * 32',
        "release/test_settlement.py::test_each_release_has_a_secret_bounding_key_of_its_own",
    ),
    _fault(
        "copies unfenced",
        "Each copy of a release under way goes on to draw answers.",
        "lifecycle/beginning.py",
        "    journal.fence = _fence(ledger, name, holder)\n",
        "",
        "release/test_copies.py::"
        "test_of_two_copies_the_one_that_was_resumed_last_publishes_and_the_other_says_why_it_does_not"
        "[sqlite-1-independent]",
    ),
    # accounting
    _fault(
        "rounded to the nearest",
        "A published epsilon lies below the true one.",
        "accounting/rounding.py",
        "return near if Fraction(near) >= value else nextafter(near, inf)",
        "return near",
        "accounting/test_accountants.py::test_rounding_goes_the_stated_way_by_at_most_one_step",
    ),
    _fault(
        "delta of the events forgotten",
        "The whole delta is used for epsilon, and again for naming values.",
        "accounting/accountants.py",
        "measure.epsilon(total, given - approximate_delta)",
        "measure.epsilon(total, given)",
        "accounting/test_selection_events.py::test_the_guarantee_states_the_delta_asked_for_and_the_part_of_it_for_lapses",
    ),
    _fault(
        "delta of one value for all of a person",
        "A person of several values is given away with several times the delta.",
        "accounting/partition_selection.py",
        "self.partitions * tail_above(self.sigma, self.threshold - 1)",
        "tail_above(self.sigma, self.threshold - 1)",
        "accounting/test_selection_events.py::test_a_tail_beyond_all_doubles_is_the_least_of_them",
    ),
    _fault(
        "Gaussian DP without its discrete part",
        "Discrete noise counts as more continuous noise than it holds.",
        "accounting/gaussian_dp.py",
        "return (1 - HIDDEN_SHARE) * sigma**2 - LEAST_HIDDEN",
        "return sigma**2",
        "release/test_promises.py::test_the_published_guarantee_is_what_the_journal_adds_up_to"
        "[gaussian-add_remove-row-auto]",
    ),
    # the ledger
    _fault(
        "cap not checked",
        "Releases beyond the cap are let through.",
        "ledger/refusals.py",
        "    if lasting and account.allows(",
        "    if lasting or account.allows(",
        "ledger/test_ledger.py::test_ten_tenths_fit_a_cap_of_one_and_an_eleventh_does_not",
    ),
    _fault(
        "ledger without a lock",
        "Two processes take the same rest of a budget.",
        "ledger/store.py",
        '"sqlite": "BEGIN IMMEDIATE"',
        '"sqlite": "BEGIN"',
        "ledger/test_ledger_races.py::test_processes_race_for_a_budget_that_one_can_have",
    ),
    _fault(
        "refund of an abandoned release",
        "A release without a journal gets its whole reservation back.",
        "ledger/ledger.py",
        "charge = recorded.reserved if cost is None else cost",
        "charge = Cost(Amount(), Fraction(0), Fraction(0)) if cost is None else cost",
        "ledger/test_ledger.py::test_an_abandoned_release_is_charged_whole_unless_its_journal_says_less",
    ),
    _fault(
        "an end above the reservation",
        "A release that spent more than it reserved is closed without a word.",
        "ledger/refusals.py",
        "    if not charge.within(recorded.reserved):",
        "    if False:",
        "ledger/test_ledger.py::test_a_release_may_cost_its_whole_reservation_and_no_more",
    ),
    _fault(
        "overlap of slices ignored",
        "A month and its quarter count as other people.",
        "ledger/privacy_filter.py",
        "        most = tuple(map(max, zip(most, running, strict=True)))",
        "        most = tuple(map(max, zip(most, changes[day], strict=True)))",
        "ledger/test_ledger.py::test_parts_are_counted_apart_and_what_overlaps_is_not",
    ),
    _fault(
        "slices always in parallel",
        "The same people in twelve months are charged for one.",
        "ledger/balance.py",
        "return Counted(self.cost, self.part if self.parallel else None)",
        "return Counted(self.cost, self.part)",
        "ledger/test_ledger.py::test_parts_that_are_not_declared_to_be_apart_add_up",
    ),
    _fault(
        "parallel slices under replace_one",
        "An exchanged row leaves one slice and enters another, and both would be charged as one.",
        "config/grammar.py",
        'if self.privacy.neighbours != "add_remove":',
        "if False:",
        "config/test_refusals.py::test_a_period_without_add_remove_is_refused_with_the_reason",
    ),
    _fault(
        "rows and persons added up",
        "Costs of guarantees about rows stand beside those about persons.",
        "ledger/refusals.py",
        "if (protected(entry.unit), entry.neighbours) != (protected(account.unit), account.neighbours):",
        "if entry.neighbours != account.neighbours:",
        "ledger/test_ledger.py::test_what_is_foreseen_is_what_a_reservation_finds_and_changes_nothing",
    ),
    _fault(
        "settlement digest not checked",
        "Two copies of a release publish two noises for one charge.",
        "ledger/ledger.py",
        'if recorded.state == "closed" and recorded.digest not in ("", digest):',
        "if False:",
        "ledger/test_ledger.py::test_a_release_is_closed_once_and_with_one_digest",
    ),
    _fault(
        "settled without a digest",
        "The ledger can't tell the answers that were settled from those of another copy.",
        "lifecycle/release_run.py",
        "            work.journal.digest,\n",
        '            "",\n',
        "release/test_copies.py::test_two_draws_of_the_last_answer_are_told_apart_when_they_are_settled"
        "[sqlite-independent]",
    ),
    _fault(
        "changed rows unseen",
        "A row of the ledger that was made cheaper is believed.",
        "ledger/chain.py",
        "if true_hash is None or row.hash != true_hash:",
        "if true_hash is None:",
        "ledger/test_tampering.py::test_every_bit_of_every_field_is_held_by_the_chain",
    ),
    _fault(
        "an occasion released twice",
        "A schedule that runs twice pays twice.",
        "ledger/ledger.py",
        'return next((r for r in same if r.state != "abandoned"), None)',
        "return None",
        "ledger/test_ledger.py::test_an_occasion_is_released_once",
    ),
    # what may depend on the table
    _fault(
        "domain from the data",
        "The values of an open category are those of the table, however few units hold them.",
        "curator/domain_questions.py",
        "lambda held: tuple(sorted(_selected(held, event)))",
        "lambda held: tuple(sorted(held))",
        "curator/test_domain_questions.py::test_named_are_values_without_blanks_that_are_neither_known_nor_missing_nor_too_long_nor_odd",
    ),
    _fault(
        "cell in an error",
        "A message quotes what a parser quoted.",
        "errors.py",
        "failed: {type(error).__name__}; details",
        "failed: {error}; details",
        "release/test_promises.py::test_a_failure_before_the_first_charge_costs_and_leaves_nothing",
    ),
    _fault(
        "a foreign error gets out",
        "A library's message, which may quote a cell, reaches the terminal.",
        "lifecycle/steps.py",
        "    except Exception as error:\n        failure",
        "    except Exception as error:\n        raise\n        failure",
        "release/test_promises.py::test_a_failure_before_the_first_charge_costs_and_leaves_nothing",
    ),
    _fault(
        "values that few hold are named",
        "Partition selection names every value.",
        "curator/partition_selection.py",
        "(secrets.randbits(BITS) < chances[level] for level in which.tolist())",
        "(chances[level] > 0 for level in which.tolist())",
        "guarantee/test_partition_selection.py::test_values_are_named_as_often_as_claimed_those_of_no_unit_never_and_large_ones_always",
    ),
    _fault(
        "rows of other slices",
        "A release of a month holds rows of others, which are charged elsewhere.",
        "domain/slices.py",
        "return span is not None and self.start <= span[0] and span[1] <= self.stop",
        "return span is not None and self.start <= span[0]",
        "domain/test_slices.py",
        "curator/test_slicing.py",
    ),
    _fault(
        "a last round that keeps half of its budget",
        "What a release has cost depends on whether triples were worth asking about.",
        "structure/beside_the_tree.py",
        "known, found, door.remaining)[0]",
        "known, found, door.remaining / 2)[0]",
        "structure/test_auto.py::"
        "test_whatever_the_noise_says_rounds_of_pairs_and_triples_spend_the_budget_and_no_more",
    ),
    # what is published
    _fault(
        "formulas in CSV files",
        "A spreadsheet runs a cell.",
        "publish/csv_safety.py",
        "return pc.if_else(pc.and_not(risky, harmless), guarded, texts)",
        "return texts",
        "publish/test_csv_safety.py",
    ),
    _fault(
        "half-written bundle shown",
        "A bundle stands under its final name before it is whole.",
        "lifecycle/outputs.py",
        "write_public(public, publication_of(",
        'commit(run.partial, run.final)\n    write_public(run.final / "public", publication_of(',
        _SHOWN_ONCE_SETTLED,
    ),
    _fault(
        "a bundle shown before settlement",
        "A release is public that the ledger may refuse to close.",
        "pipeline.py",
        '        step("settle the ledger", settle, release_run, stage.plan, guarantee)\n'
        '        step("publish the bundle", publish, release_run)\n',
        '        step("publish the bundle", publish, release_run)\n'
        '        step("settle the ledger", settle, release_run, stage.plan, guarantee)\n',
        _SHOWN_ONCE_SETTLED,
    ),
    _fault(
        "a bundle overwritten",
        "A release replaces what stands under its name.",
        "publish/bundle.py",
        "    if os.path.lexists(final):",
        "    if False:",
        "publish/test_bundle.py::test_commit_never_overwrites",
    ),
    _fault(
        "public marginals published as measurements",
        "Public totals stand among the answers that were paid for.",
        "lifecycle/answers.py",
        '"""The total and the one-way marginals of the release itself."""\n'
        "        return (*self.first, *self.again)",
        '"""The total and the one-way marginals of the release itself."""\n'
        "        return (*self.first, *self.public_one_way, *self.again)",
        "release/test_public_marginals.py::test_counts_come_out_exactly_and_are_not_asked",
    ),
    _fault(
        "evidence published as measurements",
        "Answers of earlier releases stand among those of this one, and count twice in the next.",
        "lifecycle/answers.py",
        "return [m for m in self.selection.answers if m is not None]",
        "return [*(m for m in self.selection.answers if m is not None), *self.selection.earlier]",
        "release/test_reuse.py::test_no_answer_of_an_earlier_release_is_handed_on_as_one_of_its_own",
    ),
    _fault(
        "any counts written as measurements",
        "Public counts and evidence that reach the file of measurements pass for answers that were paid for.",
        "publish/measurement_file.py",
        "if not isinstance(answer, Measurement | ExactTotal):",
        "if False:",
        "publish/test_measurement_file.py::test_what_is_no_answer_of_this_release_is_not_written_as_one",
    ),
    _fault(
        "guarantee without the choices",
        "The published epsilon leaves out what choosing cost.",
        "lifecycle/release_run.py",
        "charged = [e.event for e in journal.entries]",
        'charged = [e.event for e in journal.entries if "estimates" not in e.question]',
        "release/test_promises.py::test_the_published_guarantee_is_what_the_journal_adds_up_to"
        "[gaussian-add_remove-row-auto]",
    ),
    _fault(
        "structural zeros dropped",
        "Impossible rows have probability.",
        "model/zeros.py",
        "    return kept",
        "    return {}",
        "model/test_zeros_within.py",
    ),
    _fault(
        "constraint not enforced",
        "Rows that violate a rule are kept.",
        "rules/drawing.py",
        "good, missing = np.flatnonzero(~bad), np.flatnonzero(bad)",
        "good, missing = np.arange(rows), np.flatnonzero(bad & False)",
        "rules/test_no_row_violates.py::test_rows_obey_any_conditions",
    ),
    _fault(
        "public marginal not kept",
        "The synthetic table contradicts the public totals.",
        "model/public_marginals.py",
        "    return MarkovRandomField(model.tree, tuple(beliefs), model.total)",
        "    return model",
        "model/test_public_marginals.py",
    ),
    _fault(
        "settled at half",
        "A release counts for half of the epsilon that it published.",
        "lifecycle/release_run.py",
        "Amount(min(Fraction(guarantee.epsilon), plan.epsilon), delta)",
        "Amount(min(Fraction(guarantee.epsilon), plan.epsilon) / 2, delta)",
        "release/test_promises.py::test_the_ledger_lets_two_releases_through_and_refuses_the_third",
    ),
    _fault(
        "settled with no events",
        "The rho and mu of a release are missing in the ledger, where rho and mu are added up.",
        "lifecycle/release_run.py",
        "recorded = [e.event for e in work.journal.entries]",
        "recorded: list[events.RecordedEvent] = []",
        "release/test_settlement.py::test_the_closing_row_has_the_figures_of_the_journals_events",
    ),
    _fault(
        "the private table as the public one",
        "Exact counts of the private table enter the release as evidence.",
        "lifecycle/inputs.py",
        "path.samefile(private)",
        "path == private",
        "release/test_public.py::test_the_private_table_is_never_taken_for_a_public_one",
    ),
    # the local model
    _fault(
        "a direct response that lies too seldom",
        "Reports tell more than the epsilon of the contract.",
        "randomisers/direct.py",
        "Fraction(cells) / (odds - 1 + cells)",
        "Fraction(cells) / (2 * odds - 1 + cells)",
        "randomisers/test_randomisers.py::test_the_privacy_loss_is_exactly_the_one_stated",
    ),
    _fault(
        "gamma off",
        "Warner's reports tell more than their gamma costs.",
        "randomisers/direct.py",
        "1 - 2 * gamma",
        "1 - Fraction(5, 2) * gamma",
        "randomisers/test_randomisers.py::test_warners_and_the_two_coin_protocols_loss_is_exact",
    ),
    _fault(
        "a unary encoding with too few bits",
        "Reports tell more than the epsilon of the contract.",
        "randomisers/unary.py",
        "_STEP / (odds + 1)",
        "_STEP / (odds + 2)",
        "randomisers/test_randomisers.py::test_the_privacy_loss_is_exactly_the_one_stated",
    ),
    _fault(
        "odds rounded up",
        "Reports cost a little more than is stated.",
        "randomisers/odds.py",
        "return floor(_exp_below(Fraction(epsilon)) / _STEP) * _STEP",
        "return (1 + floor(_exp_below(Fraction(epsilon)) / _STEP)) * _STEP",
        "randomisers/test_randomisers.py::test_odds_and_losses_are_rounded_to_the_safe_side",
    ),
    _fault(
        "a die with a remainder",
        "Some cells are likelier than others, so the odds are not those stated.",
        "randomisers/coins.py",
        "words.astype(np.int64)",
        "words.astype(np.int64) % sides",
        "randomisers/test_randomisers.py::test_coins_and_dice_are_fair",
    ),
    _fault(
        "epsilon for every answer",
        "A respondent who answers all questions pays her epsilon for each of them.",
        "local/contract.py",
        "part = epsilon if one else epsilon / len(cliques)",
        "part = epsilon",
        "local/test_contract.py::test_no_report_costs_more_than_epsilon",
    ),
    _fault(
        "a second report",
        "A respondent who is asked twice spends her budget twice.",
        "local/reporting.py",
        "new = [name for name in first if memory.report(name, contract.digest) is None]",
        "new = list(first)",
        "local/test_respondents_side.py::test_a_respondent_reports_once_whatever_her_record_says_later",
    ),
    _fault(
        "a memory that is not synced",
        "After a crash a respondent may give a second report.",
        "local/memory.py",
        "        os.fsync(self._file)",
        "        pass",
        "local/test_respondents_side.py::test_a_report_is_synced_before_it_is_returned",
    ),
    _fault(
        "a cap of twice as much",
        "A respondent's reports cost more than she allows.",
        "local/reporting.py",
        "+ contract.epsilon > cap",
        "+ contract.epsilon > 2 * cap",
        "local/test_respondents_side.py::test_a_cap_holds_over_all_contracts",
    ),
    _fault(
        "a wrong factor of debiasing",
        "Estimates from reports are biased.",
        "local/estimates.py",
        "(support / reports - q) / (p - q)",
        "(support / reports - q) / p",
        "local/test_estimates.py::test_warners_estimate_and_variance_are_the_textbooks",
    ),
    _fault(
        "a report that counts twice",
        "Whoever sends a report again has more weight than others.",
        "local/reports.py",
        "elif report.id in seen:",
        "elif report.id in ():",
        "local/test_hostile_reports.py::test_a_repeated_id_counts_once_whatever_it_says",
    ),
    _fault(
        "a shuffle of twice as many",
        "The central guarantee of shuffled reports is overstated.",
        "accounting/shuffling.py",
        "clone, heads = exp(-local)",
        "clone, heads = exp(-local / 2)",
        "accounting/test_shuffling.py::test_delta_is_the_exact_divergence_of_the_clones",
    ),
    _fault(
        "a verification that trusts the checksums of files",
        "A changed file would be found by nobody, or under another's name.",
        "recipient/verification.py",
        "elif sha256_of(folder / name) != listed[name]:",
        "elif False:",
        "recipient/test_verify.py::test_any_changed_byte_is_found",
    ),
    _fault(
        "a verification that believes the stated guarantee",
        "A bundle could state a smaller epsilon than its mechanisms cost.",
        "recipient/recomputed_guarantee.py",
        "if not _equal(getattr(again, key), published[key]):",
        "if False:",
        "recipient/test_verify.py::test_a_bundle_that_contradicts_itself_is_found_though_its_seals_are_new",
    ),
    _fault(
        "an answer whose interval leaves out the noise",
        "Recipients would take a noisy number for an exact one.",
        "recipient/sources.py",
        "return self.direct.variance(self.clique, weights) if self.even else None",
        "return 0.0",
        "recipient/test_query.py::test_intervals_hold_95_of_100",
    ),
    _fault(
        "rows of which not all have what is given",
        "A sample of people of 65 and more would have younger ones.",
        "recipient/more_rows.py",
        "if wish.formula is not None:",
        "if False:",
        "recipient/test_sample.py::test_every_row_has_what_is_given",
    ),
)
