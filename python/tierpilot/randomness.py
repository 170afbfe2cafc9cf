"""The states of random number generators that what is run again may draw from."""

import random
import sys

import torch


def random_states():
    """By generator: the processor's, those of Python and, once it is used, of NumPy, and once PyTorch uses them, of all
    GPUs."""
    states = {"torch": torch.get_rng_state(), "python": random.getstate()}
    numpy = sys.modules.get("numpy.random")
    if numpy is not None and hasattr(numpy, "get_state"):  # else it is being imported
        states["numpy"] = numpy.get_state(legacy=False)
    if torch.cuda.is_initialized():
        states.update(enumerate(torch.cuda.get_rng_state_all()))
    return states


def set_random_states(states):
    for generator, state in states.items():
        if generator == "torch":
            torch.set_rng_state(state)
        elif generator == "python":
            random.setstate(state)
        elif generator == "numpy":
            sys.modules["numpy.random"].set_state(state)
        else:
            torch.cuda.set_rng_state(state, generator)


def drawn_from(before, after):
    """The states before of those generators that were drawn from."""
    return {generator: state for generator, state in before.items() if not _same(state, after[generator])}


def _same(some, other):
    if isinstance(some, torch.Tensor):
        return torch.equal(some, other)
    if isinstance(some, dict):
        return all(_same(part, other[name]) for name, part in some.items())
    if hasattr(some, "tobytes"):
        return some.tobytes() == other.tobytes()
    return some == other
