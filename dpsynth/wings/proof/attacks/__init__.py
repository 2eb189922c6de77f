"""The attacks that differential privacy is for, run against made-up tables.

Each attack is a game with one secret bit, drawn by a fair coin for a simulated person. The attacker sees
first an exact or a k-anonymous table, then what a release publishes of the same table. The share of games in
which the attacker is right is held against the most that the release's guarantee allows.

Invariant: no private table is read and nothing is charged. The truth of a game is made up from a
configuration, or sampled from the public folder of a bundle.
"""

from dpsynth.wings.proof.attacks.games import ATTACKS, Attack, Game, Played, play
from dpsynth.wings.proof.attacks.page import page
from dpsynth.wings.proof.attacks.world import Choice, World, world_of

__all__ = ["ATTACKS", "Attack", "Choice", "Game", "Played", "World", "page", "play", "world_of"]
