"""Blocks whose gradients are compared: with those of plain PyTorch, in whatever they read and change."""
import contextlib
import random

from scene import BIG, Case, Swap

import torch  # after scene, which skips without it
from torch import nn

try:
    import numpy
except ImportError:
    numpy = None

WIDTH, STEPS, BLOCKS = 64, 4, 3
ALL, NONE = (STEPS - 1) * BLOCKS, 0  # computed again: all but those of the first step


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(WIDTH, WIDTH)
        self.second = nn.Linear(WIDTH, WIDTH)
        self.begin()

    def begin(self):
        pass

    def scale(self, hidden):
        return 1.0

    def forward(self, x):
        hidden = torch.relu(self.first(x))
        return torch.tanh(self.second(hidden * self.scale(hidden)))


def block(scale, begin=lambda self: None):
    """A class of blocks that scale what they compute."""
    return type("Scaled", (Block,), {"scale": scale, "begin": begin})


def batch(step):
    return torch.randn(512, WIDTH, generator=torch.Generator().manual_seed(step))


class Changes(Case):
    def gradients(self, context, make, between=None, forward=None):
        """Of all steps; `between` is run on the blocks between forward and backward."""
        torch.manual_seed(3)
        random.seed(3)
        if numpy is not None:
            numpy.random.seed(3)
        model = make() if isinstance(make(), nn.Sequential) else nn.Sequential(*[make() for _ in range(BLOCKS)])
        parameters, seen = list(model.parameters()), []
        for step in range(STEPS):
            model.zero_grad()
            with context:
                loss = (forward or nn.Module.__call__)(model, batch(step)).square().mean()
            if between is not None:
                between(model, step)
            loss.backward()
            seen.append([p.grad.clone() for p in parameters if p.grad is not None])
            seen.append([torch.tensor([random.random()]), torch.rand(1)])
        return seen

    def same_as_plain(self, make, recomputed, **how):
        plain = self.gradients(contextlib.nullcontext(), make, **how)
        swap = Swap(BIG, "checkpoint", "memory=64MiB")
        self.same(self.gradients(swap, make, **how), plain)
        self.assertEqual(swap.statistics()["recomputed_segments"], recomputed)

    def refused(self, make, between, why):
        swap = Swap(BIG, "checkpoint", "memory=64MiB")
        with self.assertRaisesRegex(RuntimeError, why):
            self.gradients(swap, make, between=between)
