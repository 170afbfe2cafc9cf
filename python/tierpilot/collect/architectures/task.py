"""What a configuration trains: a module, one batch, and the loss of what it makes of it."""

import copy
from dataclasses import dataclass
from typing import Any, Callable

import torch
from torch.nn import functional


@dataclass
class Task:
    model: Any
    inputs: tuple
    loss: Callable  # of the model's output and what is wanted of it
    batch: int
    wanted: Any = None
    grows: bool = True  # its inputs are a batch of examples, of which there can be more

    def grow(self, times):
        """Its batch becomes so many times larger, of the same examples."""
        self.batch *= times
        self.inputs = tuple(_repeated(given, times) for given in self.inputs)
        self.wanted = None if self.wanted is None else _repeated(self.wanted, times)

    def on_meta(self):
        """A copy of shapes alone."""
        shapes = copy.deepcopy(self)
        shapes.move("meta")
        return shapes

    def move(self, device):
        """To where it is to run."""
        self.model = self.model.to(device)
        self.inputs = tuple(given.to(device) for given in self.inputs)
        self.wanted = None if self.wanted is None else self.wanted.to(device)


def _repeated(tensor, times):
    return tensor.repeat(times, *[1] * (tensor.dim() - 1))


def classification(model, *inputs_and_classes):
    """The last argument is how many classes there are, the first dimension the batch."""
    *inputs, classes = inputs_and_classes
    batch = inputs[0].shape[0]
    wanted = torch.randint(0, classes, (batch,))
    return Task(model, tuple(inputs), functional.cross_entropy, batch, wanted)


def reconstruction(model, given):
    return Task(model, (given,), functional.mse_loss, given.shape[0], given)


def next_words(model, tokens):
    """A word for each that is given."""
    return Task(
        model,
        (tokens,),
        lambda made, wanted: functional.cross_entropy(made.flatten(0, 1), wanted.flatten()),
        len(tokens),
        tokens,
    )
