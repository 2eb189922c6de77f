"""The durable ledger: what was spent on each dataset, its privacy filter, and its page."""
