"""The states of random number generators that what is run again may draw from."""

import torch


def random_states():
    """Of the processor and, once PyTorch uses them, of all GPUs."""
    states = [(None, torch.get_rng_state())]
    if torch.cuda.is_initialized():
        states += enumerate(torch.cuda.get_rng_state_all())
    return states


def set_random_states(states):
    for index, state in states:
        if index is None:
            torch.set_rng_state(state)
        else:
            torch.cuda.set_rng_state(state, index)


def same_states(some, others):
    return len(some) == len(others) and all(
        index == other and torch.equal(state, as_well) for (index, state), (other, as_well) in zip(some, others)
    )
