"""Readers of rows: files, databases and frames become batches of cells, and coded columns under construction.

All that the guarantee needs of this room is that a row's cells follow from that row alone. So two tables that
differ in the rows of one unit are read as two tables that differ in the rows of one unit. ``csv_lines``
proves it for CSV files; rows of other formats are stored apart. Nothing here knows of a question, a price or
noise.
"""
