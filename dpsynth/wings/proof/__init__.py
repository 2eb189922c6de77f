"""The wing of proof: why to trust a release. Audits, attacks, and what a guarantee means in numbers."""

from dpsynth.wing import Wing

_HERE = "dpsynth.wings.proof"

WING = Wing(
    title="Why to trust a release",
    commands={
        "explain": f"{_HERE}.commands:explain",
        "attack": f"{_HERE}.commands:attack",
        "audit": f"{_HERE}.commands:audit",
        "export": f"{_HERE}.commands:export",
    },
    points={
        "accountants of releases": f"{_HERE}.accountants.comparison:statements_of",
        "accountants of a plan": f"{_HERE}.accountants.of_a_plan:side_by_side",
        "attacks for a review": f"{_HERE}.attacks.games:for_review",
        "catalogues": f"{_HERE}.catalogues:CATALOGUES",
        "page of releases": f"{_HERE}.dataset_page:write_dataset_page",
        "publish.rounding": f"{_HERE}.disclosure.keys:Rounding",
        "publish.k_anonymity": f"{_HERE}.disclosure.keys:KAnonymity",
        "check of views": f"{_HERE}.disclosure.keys:check_views",
        "views": f"{_HERE}.disclosure.views:views_of",
        "checked views": f"{_HERE}.disclosure.checked_views:checked_views",
    },
)
