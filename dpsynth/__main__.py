"""``python -m dpsynth``."""

from dpsynth.cli import main

main()
