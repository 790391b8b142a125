"""Which steps of a training have names: whole ones, spread over the run, as many as keep what names
cost under a hundredth of the program's time; where they cost no more than that anyway, all."""

from __future__ import annotations

import math
import random
from collections import deque

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Callable

SHARE = 0.01
FIRST = 3  # have names whatever they cost
_RECENT = 9


def _middle(numbers: deque[float]) -> float:
    """The median: a step that waited for a checkpoint says nothing of others."""
    return sorted(numbers)[len(numbers) // 2]


class Sampling:
    """Steps come in stretches that are so long that names in one step of each cost a hundredth of
    its time; which step of a stretch it is, is drawn. A step with names that is due waits until
    those before it are paid for.

    >>> cheap, dear = Sampling(), Sampling()
    >>> [cheap.next(1.0, True, 0.001) for _ in range(5)]
    [True, True, True, True, True]
    >>> named = [dear.next(1.0, n < FIRST, 0.1) for n in range(29)]
    >>> sum(named)
    2
    """

    def __init__(self, draw: Callable[[], float] | None = None) -> None:
        self._draw = draw or random.Random(0).random  # the program's own numbers stay as they are
        self._steps = 0
        # Seconds: of steps without what names cost, and with it; and what they cost.
        self._plain: deque[float] = deque(maxlen=_RECENT)
        self._named: deque[float] = deque(maxlen=_RECENT)
        self._costs: deque[float] = deque(maxlen=_RECENT)
        self._elapsed = self._spent = 0.0
        self._left = self._wait = 0  # of the stretch; before its step with names
        self._due = False

    def next(self, seconds: float, named: bool, cost: float | None) -> bool:
        """Of a step that has ended: how long it took, whether it had names, and what they cost;
        None where nothing says, so that steps with names are compared with those without. Whether
        the next one is to have names."""
        self._steps += 1
        self._elapsed += seconds
        if not named:
            self._plain.append(seconds)
        elif cost is not None:
            self._plain.append(max(0.0, seconds - cost))
        else:
            self._named.append(seconds)
            if len(self._plain) < FIRST:
                return self._steps < FIRST
            cost = max(0.0, _middle(self._named) - _middle(self._plain))
        if named and cost is not None:
            self._costs.append(cost)
            self._spent += cost
        if self._steps < FIRST:
            return True
        if not self._costs and len(self._plain) < FIRST:
            return False
        if not self._costs:  # of those at the beginning
            self._costs.append(max(0.0, _middle(self._named) - _middle(self._plain)))
            self._spent += FIRST * self._costs[0]
        return self._draws(_middle(self._plain), _middle(self._costs))

    def _draws(self, each: float, cost: float) -> bool:
        stretch = max(1, math.ceil(cost / (SHARE * each) - 1e-6)) if each > 0 else FIRST
        if stretch == 1:
            self._left, self._due = 0, False
            return True
        if self._left == 0:
            self._left, self._wait, self._due = stretch, int(self._draw() * stretch), True
        self._left -= 1
        self._wait -= 1
        if self._wait >= 0 or not self._due:
            return False
        if self._spent + cost > SHARE * (self._elapsed + each + cost):
            self._left += 1  # this stretch is longer
            return False
        self._due = False
        return True
