"""The wing of governance: who may release, approved by whom, what a release must be, and what is withdrawn.

Invariant: the ledger alone decides who may release. What stands here is asked by it in the transaction that
reserves, and reads every row again whenever the ledger is read.
"""

from dpsynth.wing import Wing

_HERE = "dpsynth.wings.governance"

WING = Wing(
    title="Who may release, and what a release must be",
    commands={
        "request": f"{_HERE}.commands:request",
        "approve": f"{_HERE}.commands:approve",
        "choose": f"{_HERE}.commands:choose",
        "review": f"{_HERE}.commands:review",
        "withdraw": f"{_HERE}.commands:withdraw",
        "publish": f"{_HERE}.commands:publish",
        "question": f"{_HERE}.verification.commands:question",
        "answer": f"{_HERE}.verification.commands:answer",
        "check-answer": f"{_HERE}.verification.commands:check_answer",
    },
    functions={"request": f"{_HERE}.in_python:request"},
    points={
        "accept": f"{_HERE}.acceptance.keys:Accept",
        "criteria": f"{_HERE}.acceptance.judging:judged",
        "verification": f"{_HERE}.verification.answering:Verification",
        "regression": f"{_HERE}.verification.regression:RegressionKeys",
        "criteria beforehand": f"{_HERE}.acceptance.judging:told_beforehand",
        "policy of a ledger": f"{_HERE}.governed:Governed",
        "policy on the command line": f"{_HERE}.commands:policy",
        "notices of a bundle": f"{_HERE}.notices:notices_of",
        "embargo": f"{_HERE}.sealing:Embargo",
        "seal of a bundle": f"{_HERE}.sealing:seal",
        "sealed bundle": f"{_HERE}.sealing:sealed_in_words",
        "sealed bundles that are due": f"{_HERE}.sealing:publish_due",
    },
)
