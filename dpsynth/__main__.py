"""``python -m dpsynth``."""

from dpsynth.cli.app import main

main()
