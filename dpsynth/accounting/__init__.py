"""Events, accountants, budgets and the ledger: public arithmetic that never sees data."""
