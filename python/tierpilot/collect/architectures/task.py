"""What a configuration trains: a module, one batch, and the loss of what it makes of it."""

from dataclasses import dataclass
from typing import Any, Callable

import torch
from torch.nn import functional


@dataclass
class Task:
    model: Any
    inputs: tuple
    loss: Callable  # of the model's output
    batch: int


def classification(model, *inputs_and_classes):
    """The last argument is how many classes there are, the first dimension the batch."""
    *inputs, classes = inputs_and_classes
    batch = inputs[0].shape[0]
    wanted = torch.randint(0, classes, (batch,))
    return Task(model, tuple(inputs), lambda made: functional.cross_entropy(made, wanted), batch)


def reconstruction(model, given):
    return Task(model, (given,), lambda made: functional.mse_loss(made, given), given.shape[0])
