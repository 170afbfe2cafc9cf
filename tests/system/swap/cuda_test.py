#!/usr/bin/env python3
"""tierpilot.swap on a real GPU: values never change, and the budget is kept. Skips (77) without one."""
import contextlib
import os
import sys
import tempfile
import unittest
import warnings

os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # or sums differ from run to run

from scene import BIG, Case, Swap, train, used  # noqa: E402

import torch  # after scene, which skips without it

if not torch.cuda.is_available():
    print(f"skipped: PyTorch {torch.__version__} finds no GPU")
    sys.exit(77)

torch.use_deterministic_algorithms(True)
torch.backends.cudnn.benchmark = False
DEVICE = "cuda:0"
MIB = 1 << 20


class Block(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.attention = torch.nn.MultiheadAttention(width, 4, dropout=0.1, batch_first=True)
        self.wide, self.narrow = torch.nn.Linear(width, 4 * width), torch.nn.Linear(4 * width, width)
        self.norms = torch.nn.ModuleList(torch.nn.LayerNorm(width) for _ in range(2))

    def forward(self, x):
        y = self.norms[0](x)
        x = x + self.attention(y, y, y, need_weights=False)[0]
        return x + self.narrow(torch.nn.functional.gelu(self.wide(self.norms[1](x))))


def transformer(swap, steps=6, mixed=False, streams=False, size=512):
    """The weights that come of it."""
    torch.manual_seed(3)
    model = torch.nn.Sequential(*[Block(128) for _ in range(4)]).to(DEVICE)
    optimiser = torch.optim.Adam(model.parameters(), lr=1e-3)
    x = torch.randn(16, size, 128, device=DEVICE)
    other = torch.cuda.Stream()
    for step in range(steps):
        # Forward in a stream of its own now and then: what is saved there comes back in the other.
        elsewhere = streams and step % 2 == 1
        if elsewhere:
            other.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(other) if elsewhere else contextlib.nullcontext():
            with swap or contextlib.nullcontext(), torch.autocast("cuda", dtype=torch.bfloat16, enabled=mixed):
                loss = model(x[: 7 if step == 3 else 16]).float().square().mean()
        if elsewhere:
            torch.cuda.current_stream().wait_stream(other)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    return [p.detach().clone() for p in model.parameters()]


def chain(swap, steps, links=24, side=8 * MIB):
    """Peaks of what the allocator gave out, step by step; every link saves `side` bytes."""
    x = torch.randn(side // 4, device=DEVICE, requires_grad=True)
    peaks = []
    for _ in range(steps):
        torch.cuda.synchronize()
        held_before = torch.cuda.memory_allocated()
        with swap or contextlib.nullcontext():
            y = x
            for _ in range(links):
                y = torch.sin(y)
        y.sum().backward()
        del y
        x.grad = None
        peaks.append(swap.statistics()["last_peak_bytes"] if swap else torch.cuda.max_memory_allocated() - held_before)
    return peaks


class OnGpu(Case):
    def setUp(self):
        warnings.simplefilter("ignore")

    def test_gradients_are_those_without_to_the_last_bit(self):
        plain = train(None, device=DEVICE)
        self.same(train(None, device=DEVICE), plain)  # else nothing is shown
        with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
            for policy in ("swap-all", "swap", "capuchin", "vdnn", "q-published"):
                for tiers in ("memory=256MiB", f"dir:{folder}=256MiB"):
                    with self.subTest(policy=policy, tiers=tiers):
                        swap = Swap("1MiB", policy, tiers, device=DEVICE)
                        self.same(train(swap, device=DEVICE), plain)
                        said = swap.statistics()
                        self.assertGreater(said["saves"], 40)
                        if policy in ("swap-all", "swap"):
                            self.assertGreater(said["copies_out"], 20)
                            self.assertGreater(said["copies_in"], 20)
                        self.assertEqual(used(swap), 0)

    def test_mixed_precision_dropout_and_a_last_short_batch(self):
        for mixed in (False, True):
            plain = transformer(None, mixed=mixed)
            for settings in ({"policy": "swap-all"}, {"policy": "swap"}, {"policy": "swap", "recompute": True},
                             {"policy": "checkpoint"}, {"policy": "swap", "states": True}):
                with self.subTest(mixed=mixed, **settings):
                    swap = Swap("24MiB", tiers="memory=1GiB", device=DEVICE, **settings)
                    self.same([transformer(swap, mixed=mixed)], [plain])
                    self.assertEqual(used(swap), 0)

    def test_two_streams(self):
        plain = transformer(None, streams=True)
        for policy in ("swap-all", "swap"):
            with self.subTest(policy=policy):
                self.same([transformer(Swap("24MiB", policy, "memory=1GiB", device=DEVICE), streams=True)], [plain])

    def test_pinned_memory_is_used_and_reused(self):
        swap = Swap(BIG, "swap-all", "memory=1GiB", device=DEVICE)
        transformer(swap, steps=3)
        first = swap.statistics()["pinned_bytes"]
        transformer(swap, steps=3)
        self.assertGreater(first, 0)
        self.assertEqual(swap.statistics()["pinned_bytes"], first)

    def test_it_keeps_to_its_budget(self):
        torch.cuda.empty_cache()
        whole = max(chain(None, 2))
        self.assertGreater(whole, 24 * 8 * MIB)
        budget = torch.cuda.memory_allocated() + 12 * 8 * MIB
        swap = Swap(budget, tiers="memory=1GiB", device=DEVICE)
        peaks = chain(swap, 12)
        said = swap.statistics()
        self.assertLessEqual(max(peaks[4:]), budget, said)
        self.assertGreater(max(peaks[4:]), budget // 2)
        self.assertGreater(said["copies_out"], 12 * 8)

    def test_a_step_without_memory_runs_again(self):
        torch.cuda.empty_cache()
        total = torch.cuda.get_device_properties(0).total_memory
        torch.cuda.set_per_process_memory_fraction((torch.cuda.memory_reserved() + 160 * MIB) / total)
        try:
            with self.assertRaises(RuntimeError):
                chain(None, 1)
            torch.cuda.empty_cache()
            swap = Swap(BIG, "swap", "memory=1GiB", device=DEVICE)  # the budget is wrong: it thinks that all fits
            x = torch.randn(2 * MIB, device=DEVICE, requires_grad=True)

            def work():
                y = x
                for _ in range(24):
                    y = torch.sin(y)
                y.sum().backward()

            swap.step(work)
            self.assertGreater(swap.statistics()["copies_out"], 8)
        finally:
            torch.cuda.set_per_process_memory_fraction(1.0)


if __name__ == "__main__":
    unittest.main(verbosity=2)
