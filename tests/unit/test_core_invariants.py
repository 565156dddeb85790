"""What holds whatever happens: kills between any two steps, lost answers, edits, deletion, others' cancels."""

from __future__ import annotations

from tests.unit.examples import examples
from tests.unit.moves import Moves

TestMoves = Moves.TestCase
TestMoves.settings = examples(150, stateful_step_count=30)
