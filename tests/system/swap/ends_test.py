#!/usr/bin/env python3
"""What of a Swap, and of a program's own classes, is left when nobody has them any more."""
import gc
import os
import subprocess
import sys
import tempfile
import unittest
import weakref

from scene import BIG, MODULES, Case, Swap, train

import torch  # after scene, which skips without it


def held():
    gc.collect()
    return len(os.listdir("/proc/self/task")), len(os.listdir("/proc/self/fd"))


class Classes(Case):
    def test_a_function_that_is_defined_anew_in_each_step_ends_with_it(self):
        def step(swap):
            mask = torch.rand(256, 256)

            class Masked(torch.autograd.Function):
                @staticmethod
                def forward(ctx, x):
                    y = x * mask
                    ctx.save_for_backward(y)
                    return y

                @staticmethod
                def backward(ctx, gradient):
                    ctx.saved_tensors
                    return gradient * mask

            with swap:
                made = Masked.apply(torch.ones(256, 256, requires_grad=True).exp()).tanh().sum()
            made.backward()
            return weakref.ref(mask)

        for policy in ("none", "swap", "swap-all"):
            swap = Swap(BIG, policy, "memory=64MiB")
            masks = [step(swap) for _ in range(12)]
            gc.collect()
            self.assertLess(sum(mask() is not None for mask in masks), 3, policy)

    def test_a_function_of_the_program_is_known_from_step_to_step(self):
        def step(swap):
            class Double(torch.autograd.Function):
                @staticmethod
                def forward(ctx, x):
                    y = x * 2
                    ctx.save_for_backward(y)
                    return y

                @staticmethod
                def backward(ctx, gradient):
                    return ctx.saved_tensors[0] * 0 + gradient * 2

            with swap:
                made = Double.apply(torch.ones(256, 256, requires_grad=True)).exp().sum()
            made.backward()

        swap = Swap(BIG, "swap", "memory=64MiB")
        for _ in range(20 if "TIERPILOT_TEST_LONG" in os.environ else 6):
            step(swap)
        swap.begin()
        self.assertEqual(swap.statistics()["known_steps"], 1)

    def test_shapes_without_end_take_no_memory_without_end(self):
        from tierpilot.swapping.places import Places

        places = Places()
        weight = torch.ones(1, requires_grad=True)
        maker = (weight * 2).grad_fn
        numbers = {places.of(torch.empty(size, 0), maker) for size in range(20_000)}
        self.assertEqual(len(numbers), 20_000)
        self.assertLess(len(places._known), 5_000)
        self.assertIn(places.of(torch.empty(7, 0), maker), numbers)


class Swaps(Case):
    def setUp(self):
        before = sys.unraisablehook
        self.ignored = []
        sys.unraisablehook = lambda info: self.ignored.append(f"{info.exc_type.__name__}: {info.exc_value} {info.object}")
        self.addCleanup(lambda: setattr(sys, "unraisablehook", before))

    def dropped(self, work, **settings):
        """Threads and descriptors that some of them leave."""
        before = held()
        for _ in range(6):
            work(Swap(BIG, tiers="memory=64MiB", **settings))
        self.assertEqual(self.ignored, [])
        return tuple(now - then for now, then in zip(held(), before))

    def test_one_that_nobody_has_leaves_no_threads_and_no_descriptors(self):
        for settings in ({}, {"policy": "checkpoint"}, {"states": True}):
            with self.subTest(**settings):
                self.assertEqual(self.dropped(lambda swap: None, **settings), (0, 0))

    def test_nor_does_one_on_a_disk(self):
        before = held()
        for _ in range(5):
            Swap(BIG, tiers=f"dir:{tempfile.gettempdir()}=16MiB")
        self.assertEqual(held(), before)

    def test_nor_does_one_that_has_trained(self):
        train(Swap(BIG, "swap-all", "memory=64MiB"), (24,))  # what PyTorch begins with
        for settings in ({"policy": "swap-all"}, {"policy": "swap-all", "recompute": True}):
            with self.subTest(**settings):
                self.assertEqual(self.dropped(lambda swap: train(swap, (24, 24)), **settings), (0, 0))

    def test_nor_does_one_whose_copies_are_under_way(self):
        def begin(swap):
            with swap:
                made = torch.randn(64, 1 << 14, requires_grad=True).exp().tanh()
            del made

        begin(Swap(BIG, "swap-all", "memory=64MiB"))
        self.assertEqual(self.dropped(begin, policy="swap-all"), (0, 0))

    def test_nor_does_one_that_is_garbage_with_what_it_saved(self):
        def tie(swap):
            with swap:
                made = torch.randn(64, 1 << 14, requires_grad=True).exp().tanh()
            node = {"swap": swap, "made": made}
            node["self"] = node

        tie(Swap(BIG, "swap-all", "memory=64MiB"))
        self.assertEqual(self.dropped(tie, policy="swap-all"), (0, 0))

    def test_what_it_saved_has_it(self):
        expected = torch.linspace(0, 1, 1 << 16).exp()
        value = torch.linspace(0, 1, 1 << 16, requires_grad=True)
        with Swap(BIG, "swap-all", "memory=64MiB"):
            made = value.exp().sum()
        gc.collect()
        made.backward()
        self.assertTrue(torch.equal(value.grad, expected))

    def test_what_it_learned_is_kept(self):
        with tempfile.TemporaryDirectory() as folder:
            plans = os.path.join(folder, "plans")
            train(Swap(BIG, "swap", "memory=64MiB", plan_file=plans), (24,) * 4, evaluate=False)
            gc.collect()
            self.assertEqual(Swap(BIG, "swap", "memory=64MiB", plan_file=plans).statistics()["restored_steps"], 1)

    def test_a_relative_plan_file_stays_where_it_was(self):
        before = os.getcwd()
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            try:
                swap = Swap(BIG, "swap", "memory=64MiB", plan_file="plans")
                os.chdir("/")
                train(swap, (24,) * 4, evaluate=False)
                swap.keep()
                del swap
            finally:
                os.chdir(before)
            self.assertEqual(os.listdir(folder), ["plans"])


class Programs(Case):
    SCRIPT = """
import os, sys, torch, tierpilot
from tierpilot.swapping import Swap
plans = sys.argv[1]
class Late:
    def __del__(self): self.made.sum().backward()
def begin(swap):
    with swap:
        return torch.randn(64, 1 << 14, requires_grad=True).exp().tanh()
def train(swap):
    for _ in range(4): begin(swap).sum().backward()
swap = tierpilot.swap("8GiB", "swap-all", "memory=64MiB", plan_file=plans)
other, gone = (Swap("8GiB", "swap-all", "memory=64MiB") for _ in range(2))
train(swap); train(other); train(gone)
left = [begin(swap), begin(other)]
late = Late(); late.made = begin(other)
child = os.fork()
if child == 0:
    swap = other = gone = left = None
    late.made = torch.ones(1, requires_grad=True)
    begin(tierpilot.swap("8GiB", "swap-all", "memory=64MiB")).sum().backward()
    if len(sys.argv) > 2: os._exit(0)
    sys.exit(0)
status = os.waitpid(child, 0)[1]
del gone
print("ended", status)
"""

    def test_programs_and_their_forks_end_well(self):
        for arguments in ((), ("at once",)):
            with self.subTest(*arguments), tempfile.TemporaryDirectory() as folder:
                plans = os.path.join(folder, "plans")
                ended = subprocess.run(
                    [sys.executable, "-c", self.SCRIPT, plans, *arguments], env={**os.environ, "PYTHONPATH": MODULES},
                    capture_output=True, text=True, timeout=300,
                )
                self.assertEqual((ended.returncode, ended.stdout, ended.stderr), (0, "ended 0\n", ""))
                self.assertEqual(Swap(BIG, "swap-all", "memory=64MiB", plan_file=plans).statistics()["restored_steps"], 1)


if __name__ == "__main__":
    unittest.main()
