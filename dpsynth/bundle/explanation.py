"""The guarantee of a release and its limits, in plain words.

The manifest, the report and the recipient's README share this one source, so they can't disagree.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction

from dpsynth.accounting.amount import float_up
from dpsynth.accounting.composition import group_amount
from dpsynth.accounting.events import Guarantee
from dpsynth.accounting.neighbours import EVENT, ROW, left_unprotected, neighbours_in_words
from dpsynth.bundle.publication import Publication, audiences_in_words
from dpsynth.columns.calendar import invents_time_of_day
from dpsynth.columns.column import Column, merged_columns
from dpsynth.columns.domain import Clique
from dpsynth.figures import guess_percent, listed, odds_factor, rounded_up
from dpsynth.statistics.public_estimates import cautions_with_public_marginals
from dpsynth.statistics.structure_tree import Paths
from dpsynth.statistics.tables import StatisticTable
from dpsynth.strategy.reuse_record import cautions_with, cautions_with_public, guarantee_with


def _short_unit(guarantee: Guarantee) -> str:
    return guarantee.unit.split(":")[0]


def _by_row(guarantee: Guarantee) -> bool:
    return guarantee.unit in (ROW, EVENT)


def headline(guarantee: Guarantee) -> str:
    """The guarantee in its usual notation; no line breaks inside an equation."""
    epsilon = f"ε\N{NO-BREAK SPACE}=\N{NO-BREAK SPACE}{rounded_up(guarantee.epsilon)}"
    if not guarantee.delta:
        return f"ε-differential privacy with {epsilon}"
    delta = f"δ\N{NO-BREAK SPACE}=\N{NO-BREAK SPACE}{rounded_up(guarantee.delta)}"
    return f"(ε,\N{NO-BREAK SPACE}δ)-differential privacy with {epsilon} and {delta}"


def guarantee_in_words(guarantee: Guarantee) -> tuple[str, ...]:
    """The guarantee as sentences for readers who don't know the notation."""
    unit = _short_unit(guarantee)
    slack = f", give or take a probability of {rounded_up(guarantee.delta)} (δ)" if guarantee.delta else ""
    if guarantee.neighbours == "replace_one":
        change = f"{unit} been exchanged for any other"
        question = f"which of two versions of {unit} the private table holds"
    else:
        change = f"{unit} been left out of the private table, or added to it"
        question = f"whether {unit} that they know of is in the private table"
    factor = odds_factor(guarantee.epsilon)
    chance = guess_percent(guarantee.epsilon, guarantee.delta)
    sentences = [
        f"What is protected is {guarantee.unit}.",
        f"Had {change}, everything published here could have come out the same: no outcome would have become "
        f"more than e^ε = {factor} times as likely or as unlikely{slack}.",
        f"Suppose that somebody guesses {question}. A coin would be right half of the time. After reading "
        f"all of this they are right at most {chance} % of the time, whatever else they know and however "
        "much they compute.",
        "It holds for all the published files together, and for anything that anyone computes from them.",
    ]
    if guarantee.approximate_delta:
        sentences.append(
            f"Of δ, {rounded_up(guarantee.approximate_delta)} is for naming values that the configuration "
            "does not list: a value that one unit alone has is named with at most that probability. All "
            "other figures hold but for that."
        )
    return tuple(sentences)


def guarantee_words(publication: Publication) -> tuple[str, ...]:
    """The guarantee of a publication as sentences, by a curator or of every respondent by herself."""
    if publication.collection is None:
        others = () if publication.audience is None else audiences_in_words(publication.audience)
        more = (*_sampled_in_words(publication), *others, *publication.unit_changed)
        return (*guarantee_in_words(publication.guarantee), *more)
    return publication.collection.guarantee_in_words(publication.guarantee)


def _sampled_in_words(publication: Publication) -> tuple[str, ...]:
    """The part of a secret sample in the guarantee, as sentences."""
    if publication.sampled is None:
        return ()
    rate = f"{100 * publication.sampled.rate:g} %"
    return (
        f"All of this was asked of a secret random sample, in which each unit was with a chance of {rate}. "
        "Nobody but the owner can know who was in it, and ε and δ count on that. Counts are those of the "
        f"sample divided by {publication.sampled.rate:g}, and intervals count the error of sampling. "
        "measurements.parquet and model.npz are in rows of the sample.",
    )


_IN_WORDS = (2, 5, 20)
"""Sizes of groups whose guarantee stands in a sentence."""


def _group_in_words(guarantee: Guarantee, units: int) -> str:
    """The guarantee of a group: ``ε = 2.12``, with its delta where that differs from the release's."""
    amount = group_amount(guarantee, units)
    if amount is None:
        return "no guarantee that says anything"
    epsilon = f"ε = {rounded_up(float_up(amount.epsilon))}"
    if amount.delta == Fraction(repr(guarantee.delta)):
        return epsilon
    return f"{epsilon} with δ = {rounded_up(float_up(amount.delta))}"


def _groups_in_words(guarantee: Guarantee, of: str) -> str:
    """The guarantees of groups of several sizes: ``with 2 rows it is ε = 2.12, with 5 rows ε = 5.93``."""
    same = " at the same δ" if guarantee.delta and not guarantee.approximate_delta else ""
    return f"{', '.join(f'with {k} {of} it is {_group_in_words(guarantee, k)}' for k in _IN_WORDS)}{same}"


def rows_in_words(publication: Publication) -> str:
    """The rows of the private table that a release is about, as a sentence; "" for all of them."""
    return rows_about(None if publication.part is None else publication.part.to_json())


def rows_about(period: object) -> str:
    """The rows that a release is about by its manifest's ``period``, as a sentence; "" for all of them."""
    if not isinstance(period, Mapping):
        return ""
    return f"It is about the rows of {period['label']} alone, by the column '{period['column']}'."


def not_protected(publication: Publication) -> tuple[str, ...]:
    """The limits of the guarantee, as sentences."""
    if publication.collection is not None:
        return publication.collection.not_protected()
    guarantee = publication.guarantee
    sentences = [
        "Facts that hold for whole groups. If a habit and an illness go together in the private table, the "
        "release may show it, and what it says of a group may be true of anyone in it, whether or not they "
        "were in the table.",
        "The choices in the configuration: the columns, their bounds, bins and categories as far as they "
        "were declared, and the budget. They are taken to be public knowledge, chosen without looking at the "
        "table.",
        "Anything outside this table: other tables, or other people's knowledge of the same facts.",
        "Other releases about the same people. Their losses add up with this one's; the data owner's ledger "
        "keeps count of them.",
    ]
    if publication.rows_on_trust:
        sentences.append(
            "A unit that moves more rows than the owner says. The private table is the result of a query, "
            "which may put several rows together, or fail on a cell. Its owner has stated that one unit "
            "moves no more of its rows than the unit allows for, and that no cell makes it fail. Nothing "
            "checked that."
        )
    if publication.part is not None:
        sentences.append(
            f"Rows of other periods than {publication.part.label}. Each period that is released has a "
            "guarantee of its own, and the losses of somebody with rows in several periods add up."
        )
    if guarantee.neighbours == "replace_one" and _by_row(guarantee):
        sentences.append(
            "The number of rows. Under the neighbour relation replace_one it is taken to be public, and it "
            "is exact."
        )
    if _by_row(guarantee):
        several = "events" if guarantee.unit == EVENT else "rows"
        sentences.append(
            f"People with several {several}, as a whole. One of them is what is protected, and all {several} "
            f"of somebody who has several are protected less: {_groups_in_words(guarantee, several)}."
        )
    else:
        or_none = ", or have none," if publication.nameless == "together" else ""
        # Other persons' rows may replace hers: the person whom all these rows make is exchanged.
        one_of_several = (
            "Each of them is protected as a whole person is"
            if guarantee.neighbours == "replace_one"
            else "If one of them comes or goes, that counts as a change of two persons, with "
            f"{_group_in_words(guarantee, 2)}"
        )
        sentences.append(
            "How rows are grouped into people. The guarantee is as good as the column that names the person "
            f"of a row. People who share an id{or_none} count as one person. {one_of_several}. Somebody with "
            f"several ids is protected less, too: {_groups_in_words(guarantee, 'ids')}."
        )
        near = neighbours_in_words("add_remove", guarantee.unit)
        if near.per is not None:
            several = f"{near.per.every}s"
            sentences.append(
                f"{left_unprotected(guarantee.unit)} Somebody with rows in several {several} is "
                f"protected less: {_groups_in_words(guarantee, several)}."
            )
        elif near.kind == "household":
            sentences.append(left_unprotected(guarantee.unit))
    return tuple(sentences)


_FOUND = {
    "max_rows": "most rows to use of one value",
    "bounds": "smallest and largest value",
    "quantiles": "edges of bins",
    "tree": "edges of bins",
    "values": "values",
    "prefixes": "beginnings",
}


def found_in_words(publication: Publication) -> str:
    """The facts of columns that were found with a part of the budget; "" where all were declared."""
    if not publication.found:
        return ""
    of: dict[str, list[str]] = {}
    for column, finds in publication.found.items():
        of.setdefault(" and ".join(dict.fromkeys(_FOUND[find] for find in finds)), []).append(column)
    finds_of = "; ".join(f"{what} of {', '.join(columns)}" for what, columns in of.items())
    return (
        f"Found with a part of the budget, and covered by the guarantee: {finds_of}. These are noisy answers "
        "like all others: numbers beyond the ends were moved to them, and values that few rows have were put "
        "together under one name."
    )


def rests_on_model(publication: Publication) -> bool:
    """True if any table of statistics is the model's rather than measured."""
    return any(not statistic.measured for statistic in publication.statistics)


def assumption(statistic: StatisticTable, cliques: Sequence[Clique], earlier: Sequence[Clique] = ()) -> str:
    """The assumption of a table by the model; "" for a measured one.

    Args:
        statistic: the table.
        cliques: the cliques that were measured together, by groups where values were merged.
        earlier: the cliques of earlier releases and of a public table on which the model rests.
    """
    if statistic.measured:
        return ""
    path = Paths((*cliques, *earlier)).between(*statistic.columns) if len(statistic.columns) == 2 else ()

    def together(those: Sequence[Clique]) -> bool:
        return any(set(statistic.columns) <= set(clique) for clique in those)

    if together(cliques):
        taken = (
            "Measured together with rare values merged: a value is taken to be independent of the other "
            "columns, given its group."
        )
    elif together(earlier):
        taken = (
            "Measured together by earlier releases only, or found in a public table only, and taken to be "
            "related as it was found there."
        )
    elif path is None:
        taken = "Not measured together, and taken to be independent."
    elif path:
        taken = f"Not measured together: related here only through {listed(path)}."
    else:
        taken = "Not all measured together: beyond what was, taken to be independent."
    if statistic.limits == "95 %":
        return f"{taken} The intervals cover the error of that, as the exam has measured it."
    return (
        f"{taken} The intervals cover the noise alone; the private table's own numbers may lie far outside."
    )


def merged_in_words(publication: Publication) -> str:
    """The columns with merged values, the reason and the consequences, in words."""
    names = tuple(m.column for m in merged_columns(publication.columns, publication.compression))
    if not names:
        return "No values were merged."
    precise = " Where earlier releases made counts precise, the limit is lower." if publication.reused else ""
    return (
        f"Rare values were merged before columns were measured together, in {listed(names)}. A value is rare "
        f"if, by the column's own noisy counts, it has fewer than {publication.merged_below:,.0f} rows. In "
        "columns of numbers and dates neighbouring counts are smoothed first, and the limit is higher, so "
        f"that about ten groups or more are left.{precise} One by one, such values would drown in the noise "
        "when columns are measured together. How many rows have each of them is still known, from the "
        "column's own counts. How the values of one group differ in other columns is not known: in the "
        "synthetic table they don't."
    )


def constraints_in_words(publication: Publication) -> tuple[str, ...]:
    """The meaning of the rules of the synthetic rows, as sentences; none without rules."""
    if not publication.constraints:
        return ()
    return (
        "No row of the synthetic table violates one of these rules. They were stated from public knowledge "
        "and never compared with the private table, whose own rows may violate them.",
        "A rule says nothing of a missing cell unless it asks whether one is missing: a comparison with a "
        "missing cell is taken to be obeyed.",
        "The tables of statistics and the model are those of the noisy answers. Combinations of values that "
        "a rule forbids are zeros of the model where it had room for that; otherwise these tables are not "
        "bent to the rules, and may count what no synthetic row has. Nor do the rules hold for rows that "
        "someone draws from the model anew.",
    )


def cautions(publication: Publication) -> tuple[str, ...]:
    """Cautions on the numbers, as sentences."""
    sentences = [
        "A standard error says how far a number is likely to lie from the private table's own, because of "
        "the noise that was added for privacy. An interval reaches 1.96 of them to each side.",
        "They say nothing of how well the private table stands for a larger population: that error, if "
        "there is one, comes on top.",
        "Tables of columns that were measured together come straight from the noisy answers, averaged by "
        "least squares: no model bends them one way or the other. Their standard errors follow from the "
        "known variance of the noise, exactly for counts, and very nearly for shares and means, which are "
        "ratios. About 95 in 100 of their intervals hold the private table's own number.",
        "So such a count may come out below zero. It is left there, because then sums of cells have no "
        "bias either; only the ends of its interval are cut at 0. The upper end never is 0: a small count "
        "is not proven to be none.",
        "A mean is left out where there are too few rows to bear one: fewer than three standard errors of "
        "their number, or fewer than half a row.",
        "Only columns that were measured together have a relation of their own. For all others the model, "
        "and the synthetic table with it, takes them to be independent, given the columns between them.",
    ]
    if rests_on_model(publication):
        sentences.append(
            "Tables marked “by the model” rest on that. Where the column “limits” says 95 %, their intervals "
            "follow from the measured error of the synthetic table in those columns (exam.csv), and from a "
            "model of how it is spread over the cells. Where it says “noise only”, they cover fresh noise "
            "alone: if the columns are related in a way that was not measured, the private table's own "
            "numbers may lie far outside. A difference between groups that is missing here may be there in "
            "truth."
        )
    sentences += [
        "Small groups drown in the noise. A cell whose interval reaches 0 may well be empty.",
        "Numbers in wide bins are known only by bin. Within a bin, the synthetic table follows the trend of "
        "the counts in the neighbouring bins. The tables of means say how much that could matter.",
        "The synthetic table was drawn from the model, whose counts are never negative, and then refined: "
        "rows were changed until the table's counts of all pairs of columns came near to what the answers "
        "say of them. Counting its rows gives nearly, but not exactly, the numbers in the tables.",
        "A synthetic row is nobody's row. It may agree with a real one by chance, and nothing follows from "
        "it.",
        *_invented(publication.columns),
        *cautions_with(publication.reused),
        *cautions_with_public(publication.public_table),
        *cautions_with_public_marginals(publication.public_marginals),
    ]
    if publication.collection is None and not _by_row(publication.guarantee):
        together = publication.nameless == "together"
        unnamed = (
            f"Rows that name no person {'count as those of one person' if together else 'were left out'}."
        )
        sentences.insert(
            2,
            "The synthetic rows make up no persons. Each row was drawn by itself, and no two "
            "of them belong to one person. So they can't say how many rows a person has, how a person "
            "changes from row to row, or which rows of one person go together.",
        )
        sentences.insert(
            3,
            "Persons with more rows than the unit allows count with that many, chosen at random. "
            f"{unnamed} Totals are of the rows that were kept, and intervals say "
            f"nothing of those that were not. {_cut_off_in_words(publication)}",
        )
    if publication.lost:
        pairs = "; ".join(" and ".join(clique) for clique in publication.lost)
        sentences.append(
            "The release was interrupted and resumed. What it had chosen and lost is paid for but not "
            f"measured: {pairs}."
        )
    if publication.collection is not None:
        return publication.collection.cautions(sentences)
    return tuple(sentences)


def _cut_off_in_words(publication: Publication) -> str:
    """A sentence on how many rows were cut off; the verdict has the figures."""
    if publication.cut is None:
        return "How many these are was not asked."
    return publication.cut.too_low or "How many these are can't be told from none."


def _invented(columns: Sequence[Column]) -> Iterator[str]:
    """A caution about moments whose hours were not measured."""
    names = [column.name for column in columns if invents_time_of_day(column)]
    if names:
        yield (
            f"The time of day of {listed(tuple(names))} is invented: no hour was measured, and in the "
            "synthetic table all are equally likely. Nothing follows from it."
        )


REHEARSAL = (
    "REHEARSAL, no release: the table behind it was made up from the configuration. Nothing here says "
    "anything about real data, and nothing was charged."
)
"""The first line of every page of a rehearsal."""


def shared_by_pages(publication: Publication) -> dict[str, object]:
    """The words and facts that the report and the README share, by their names in the templates."""
    return {
        "publication": publication,
        "guarantee": publication.guarantee,
        "headline": headline(publication.guarantee),
        "rows_about": rows_in_words(publication),
        "words": [
            *guarantee_words(publication),
            *guarantee_with(publication.reused),
        ],
        "builds_on": bool(guarantee_with(publication.reused)),
        "cautions": cautions(publication),
        "not_protected": not_protected(publication),
        "found": found_in_words(publication),
        "modelled": rests_on_model(publication),
        "merged": merged_columns(publication.columns, publication.compression),
        "constraints_in_words": constraints_in_words(publication),
        "merged_in_words": merged_in_words(publication),
        "rehearsal": REHEARSAL,
        "adds_nothing": "" if publication.views is None else publication.views.adds_nothing,
    }
