"""One training under one policy, a step at a time: reads a word a line, answers with a line of JSON.

Its settings are JSON in its only argument. The kernel holds it to its budget: beyond what it had
without memory of its own (stacks, mapped libraries), RLIMIT_DATA leaves it no more than that.
"""

import contextlib
import hashlib
import json
import resource
import sys
import time

import torch
from torch import nn
from torch.nn import functional as F


class Block(nn.Module):
    """He et al., Deep Residual Learning for Image Recognition, 2016, for small pictures."""

    def __init__(self, inputs, outputs):
        super().__init__()
        stride = 1 if inputs == outputs else 2
        self.first = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.second = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.norms = nn.ModuleList(nn.BatchNorm2d(outputs) for _ in range(2))
        self.short = nn.Identity() if stride == 1 else nn.Conv2d(inputs, outputs, 1, 2, bias=False)

    def forward(self, x):
        y = F.relu(self.norms[0](self.first(x)), inplace=True)
        return F.relu(self.norms[1](self.second(y)) + self.short(x), inplace=True)


def net(blocks):
    widths = [16] * blocks + [32] * blocks + [64] * blocks
    return nn.Sequential(
        nn.Conv2d(3, 16, 3, 1, 1, bias=False),
        nn.BatchNorm2d(16),
        nn.ReLU(inplace=True),
        *[Block(a, b) for a, b in zip([16] + widths, widths)],
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(64, 10),
    )


def kilobytes(name):
    with open("/proc/self/status") as status:
        for line in status:
            if line.startswith(name + ":"):
                return int(line.split()[1])
    return 0


def set_limit(budget):
    beside = (kilobytes("VmData") - kilobytes("RssAnon")) * 1024
    resource.setrlimit(resource.RLIMIT_DATA, (budget + beside, resource.RLIM_INFINITY))


class Training:
    def __init__(self, settings):
        torch.manual_seed(1)
        self.swap = None
        if settings["policy"] != "plain":
            import tierpilot

            self.swap = tierpilot.swap(settings["budget"], settings["policy"], settings.get("tiers"))
        if settings.get("limited"):
            set_limit(settings["budget"])
        self.model = net(settings["blocks"])
        self.optimiser = torch.optim.SGD(self.model.parameters(), lr=0.05, momentum=0.9)
        self.x = torch.randn(settings["batch"], 3, 32, 32)
        self.y = torch.randint(0, 10, (settings["batch"],))

    def step(self):
        begin = time.monotonic()
        with self.swap or contextlib.nullcontext():
            loss = F.cross_entropy(self.model(self.x), self.y)
        self.optimiser.zero_grad()
        loss.backward()
        self.optimiser.step()
        took = time.monotonic() - begin
        digest = hashlib.blake2b(digest_size=16)
        for parameter in self.model.parameters():
            digest.update(parameter.grad.numpy().tobytes())
        said = {"seconds": took, "loss": loss.item(), "gradients": digest.hexdigest()}
        if self.swap is not None:
            said["swap"] = self.swap.statistics()
        return said


def main():
    try:
        training = Training(json.loads(sys.argv[1]))
        for word in sys.stdin:
            if word.strip() == "step":
                said = training.step()
            else:
                said = {"step": training.swap.last_step(), "tiers": training.swap.tiers()}
            print(json.dumps(said), flush=True)
    except (RuntimeError, MemoryError) as error:  # PyTorch's word for "no memory" is RuntimeError
        if isinstance(error, RuntimeError) and "memory" not in str(error):
            raise
        reason = next((line for line in str(error).splitlines() if "memory" in line), "no memory")
        print(json.dumps({"failed": reason.strip()}), flush=True)


if __name__ == "__main__":
    main()
