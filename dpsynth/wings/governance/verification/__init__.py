"""Verification for recipients: does something that they found in a release hold of the private table?

A recipient writes a question down, with what the bundle answers to it. The owner's answer is a release of its
own, of the columns that the question names and of a small price: through the same door, journal and ledger.
What is handed back says whether the recipient's figures are near the truth, and is signed.
"""
