"""What the tests of tierpilot.swap share: a net, its training, and the program's arguments: the folder
of the Python module, libtierpilot-swap, tierpilot-swap. Skips (77) without PyTorch."""
import gc
import os
import sys
import time
import unittest

MODULES, LIBRARY, PROGRAM = sys.argv[1:4]
del sys.argv[1:4]
sys.path.insert(0, MODULES)
os.environ["TIERPILOT_SWAP_LIBRARY"] = LIBRARY

try:
    import torch
except ImportError as error:
    print(f"skipped: no PyTorch for {sys.executable}: {error}")
    sys.exit(77)

from tierpilot.swapping import Swap  # noqa: E402

torch.set_num_threads(1)
BIG = "8GiB"  # never reached
# A training that knows nothing of swapping, as "python3 -c" takes it.
UNAWARE = """
import sys, torch
torch.manual_seed(3)
model = torch.nn.Sequential(*[torch.nn.Linear(512, 512) for _ in range(6)])
for _ in range(4):
    loss = model(torch.ones(256, 512)).square().sum()
    model.zero_grad()
    loss.backward()
print(model[0].weight.grad.sum().item(), sys.argv[1:])
"""


class Residual(torch.nn.Module):
    """Shared storages (a sum's branches), views, changes in place."""

    def __init__(self, width):
        super().__init__()
        self.first = torch.nn.Conv2d(width, width, 3, padding=1)
        self.norm = torch.nn.BatchNorm2d(width)
        self.second = torch.nn.Conv2d(width, width, 3, padding=1)

    def forward(self, x):
        return torch.nn.functional.relu_(self.second(torch.relu_(self.norm(self.first(x)))) + x)


def net():
    torch.manual_seed(5)
    return torch.nn.Sequential(
        torch.nn.Conv2d(3, 16, 3, padding=1),
        Residual(16),
        torch.nn.MaxPool2d(2),
        Residual(16),
        torch.nn.Flatten(),
        torch.nn.Linear(16 * 64, 32),
        torch.nn.Tanh(),
        torch.nn.Dropout(0.2),
        torch.nn.Linear(32, 10),
    )


def data(size, seed=7):
    random = torch.Generator().manual_seed(seed)
    return (
        torch.randn(size, 3, 16, 16, generator=random),
        torch.randint(0, 10, (size,), generator=random),
    )


def train(swap, batches=(24, 24, 24, 9, 24, 24, 9, 24), evaluate=True, device="cpu"):
    """Every gradient of a training with short batches and looks at other data in between."""
    model, seen = net().to(device), []
    optimiser = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    torch.manual_seed(11)
    for step, size in enumerate(batches):
        x, y = (part.to(device) for part in data(size, step))
        if swap is None:
            loss = torch.nn.functional.cross_entropy(model(x), y)
        else:
            with swap:
                loss = torch.nn.functional.cross_entropy(model(x), y)
        optimiser.zero_grad()
        loss.backward()
        seen.append([p.grad.clone() for p in model.parameters()])
        optimiser.step()
        if evaluate and step % 3 == 1:
            model.eval()
            with torch.no_grad():
                model(data(5)[0].to(device))
            model.train()
    return seen


def used(swap):
    """Bytes that the pool holds."""
    gc.collect()
    swap._reap()
    return sum(tier["used_bytes"] for tier in swap.tiers())


def let_leave(swap):
    """Returns when all that was saved so far has left; of swap-all, where nothing has ended before its copy began."""
    while swap.statistics()["copies_out"] < swap.statistics()["saves"]:
        time.sleep(0.001)
    swap._reap()


class Case(unittest.TestCase):
    def same(self, one, other):
        self.assertEqual(len(one), len(other))
        for ours, plain in zip(one, other):
            for a, b in zip(ours, plain):
                self.assertTrue(torch.equal(a, b))
