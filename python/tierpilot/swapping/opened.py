"""The Swaps of this process, by their settings."""

import collections
import os
import threading

from . import core
from .session import Swap
from .telling import warn

_MOST = 8  # settings: each has threads and what it learned, and ends when nobody has it any more
_opened = collections.OrderedDict()  # the one that was asked for the longest ago is the first
_opening = threading.Lock()


def _begin_anew():
    """In a child, whose parent's other threads may have held it."""
    global _opening
    _opening = threading.Lock()
    _opened.clear()


os.register_at_fork(after_in_child=_begin_anew)


def _budget_of_the_task():
    budget = os.environ.get("TIERPILOT_SWAP_BUDGET")
    if not budget:
        raise ValueError(
            'tierpilot.swap: no budget: give one, as in swap(budget="4GiB"), or set TIERPILOT_SWAP_BUDGET, which '
            "tierpilot-swap run sets, and a task with --memory and --swap-room has"
        )
    core.budget_bytes(budget, "TIERPILOT_SWAP_BUDGET")
    return budget


def swap(budget=None, policy="swap", tiers=None, recompute=False, plan_file=None, states=None, device=None):
    """The Swap of this process with these settings, opened at the first call: see tierpilot.swap."""
    given = _budget_of_the_task() if budget is None else None
    budget = None if given else core.budget_bytes(budget)
    policy, tiers, plan_file, device = core.checked(policy, tiers, plan_file, device)
    recompute, states = core.yes_or_no("recompute", recompute), None if states is None else core.yes_or_no("states", states)
    plan_file = plan_file and os.path.abspath(plan_file)
    with _opening:
        key = budget, given, policy, tiers, recompute, plan_file, states, device
        if key not in _opened:
            if len(_opened) >= _MOST:
                del _opened[next(iter(_opened))]
                warn(
                    f"called with more than {_MOST} different settings, and forgets those that were not used for "
                    "longest: each learns for itself, so say the same budget in each step"
                )
            _opened[key] = Swap(budget, policy, tiers, recompute=recompute, plan_file=plan_file, states=states, device=device)
        _opened.move_to_end(key)
        return _opened[key]
