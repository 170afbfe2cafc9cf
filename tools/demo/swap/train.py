"""One training under one policy, a step at a time: reads a word a line, answers with a line of JSON.

Its settings are JSON in its only argument.
"""

import contextlib
import hashlib
import json
import os
import resource
import sys
import time

import published_nets
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


class Training:
    def __init__(self, settings):
        torch.manual_seed(1)
        if "threads" in settings:
            torch.set_num_threads(settings["threads"])
        self.swap = None
        if settings["policy"] != "plain":
            import tierpilot

            os.environ["TIERPILOT_SWAP_HEAP"] = settings.get("heap", "1")
            named = {name: settings[name] for name in ("tiers", "recompute", "plan_file", "states") if name in settings}
            self.swap = tierpilot.swap(settings["budget"], settings["policy"], **named)
        published = published_nets.NETS.get(settings.get("net"))
        self.model = published() if published else net(settings["blocks"])
        if settings.get("channels_last"):
            self.model.to(memory_format=torch.channels_last)
        self.optimiser = torch.optim.SGD(self.model.parameters(), lr=0.05, momentum=0.9)
        self.x = torch.randn(settings["batch"], 3, 32, 32)
        if settings.get("channels_last"):
            self.x = self.x.to(memory_format=torch.channels_last)
        self.y = torch.randint(0, 10, (settings["batch"],))

    def step(self):
        begin, used = time.monotonic(), resource.getrusage(resource.RUSAGE_SELF)
        with self.swap or contextlib.nullcontext():
            loss = F.cross_entropy(self.model(self.x), self.y)
        self.optimiser.zero_grad()
        loss.backward()
        self.optimiser.step()
        took, now = time.monotonic() - begin, resource.getrusage(resource.RUSAGE_SELF)
        digest = hashlib.blake2b(digest_size=16)
        for parameter in self.model.parameters():
            gradient = parameter.grad
            digest.update(gradient.as_strided([gradient.numel()], [1]).numpy())  # as it lies: a copy would be memory
        said = {"seconds": took, "loss": loss.item(), "gradients": digest.hexdigest(),
                "user_seconds": now.ru_utime - used.ru_utime, "system_seconds": now.ru_stime - used.ru_stime,
                "page_faults": now.ru_minflt - used.ru_minflt}  # of all threads
        if self.swap is None:
            # The kernel's own mark of the most that was resident, without what files are mapped.
            said["peak_bytes"] = (kilobytes("VmHWM") - kilobytes("RssFile") - kilobytes("RssShmem")) * 1024
        else:
            said["swap"] = self.swap.statistics()
        return said


def main():
    training = Training(json.loads(sys.argv[1]))
    print(json.dumps({"ready_bytes": kilobytes("RssAnon") * 1024}), flush=True)
    for word in sys.stdin:
        if word.strip() == "step":
            said = training.step()
        else:
            said = {"step": training.swap.last_step(), "tiers": training.swap.tiers()}
        try:
            print(json.dumps(said), flush=True)
        except BrokenPipeError:
            os._exit(0)  # who asked is gone, and what Python flushes at its end would fail again


if __name__ == "__main__":
    main()
