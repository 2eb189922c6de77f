"""Events, measures, accountants and calibration: public arithmetic that never sees data."""
