"""The interface in Python: tables in memory, configurations as keyword arguments, results for notebooks."""
