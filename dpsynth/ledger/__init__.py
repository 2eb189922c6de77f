"""The durable ledger: the budget spent on each dataset, its privacy filter, and its page."""
