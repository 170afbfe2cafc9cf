#!/usr/bin/env python3
"""What a training saves goes through the hooks in C++, where they can be loaded, and through those in Python otherwise;
both give the same."""
import gc
import os
import subprocess
import sys
import threading
import time
import unittest

from scene import BIG, Case, LIBRARY, MODULES, Swap, data, net, used

import torch  # after scene, which skips without it
from tierpilot.swapping import fields
from tierpilot.swapping.saved import Handle

IN_CPP = os.environ.get("TIERPILOT_SWAP_HOOKS") != "python"
LOADED = "from tierpilot.swapping import fields; print(fields._module is not None)"


def gradients(model, x, y, swap):
    for module in model.modules():
        if isinstance(module, torch.nn.BatchNorm2d):
            module.reset_running_stats()
    torch.manual_seed(4)
    with swap:
        loss = torch.nn.functional.cross_entropy(model(x), y)
    model.zero_grad()
    loss.backward()
    return [p.grad.clone() for p in model.parameters()]


class Counting:
    """How often the ways in Python are gone."""

    def __init__(self, swap):
        self.swap, self.saved, self.given = swap, 0, 0
        pack, get = swap._pack, swap._get
        swap._pack, swap._get = self.counted("saved", pack), self.counted("given", get)

    def counted(self, name, way):
        def called(what):
            setattr(self, name, getattr(self, name) + 1)
            return way(what)

        return called


def loaded(**settings):
    return subprocess.run(
        [sys.executable, "-c", LOADED], check=True, text=True, stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": MODULES, "TIERPILOT_SWAP_LIBRARY": LIBRARY, **settings}).stdout.strip()


class Hooks(Case):
    def test_those_in_cpp_are_loaded_unless_others_are_asked_for(self):
        self.assertEqual(fields._module is not None, IN_CPP)
        self.assertEqual(loaded(TIERPILOT_SWAP_HOOKS=""), "True")
        self.assertEqual(loaded(TIERPILOT_SWAP_HOOKS="python"), "False")

    @unittest.skipUnless(IN_CPP, "hooks in Python")
    def test_most_of_a_known_step_goes_no_way_in_python(self):
        model, (x, y) = net(), data(48)
        swap = Swap(BIG, "none", "memory=64MiB")
        for _ in range(2):
            gradients(model, x, y, swap)
        before, counting = swap.statistics()["saves"], Counting(swap)
        gradients(model, x, y, swap)
        self.assertGreater(swap.statistics()["saves"] - before, 8)
        self.assertLessEqual((counting.saved, counting.given), (2, 2))  # the first one to be given begins the pass

    def test_nothing_is_left_behind(self):
        model, (x, y) = net(), data(48)
        for policy in ("none", "swap-all"):
            with self.subTest(policy=policy):
                swap = Swap(BIG, policy, "memory=256MiB")
                for _ in range(3):
                    gradients(model, x, y, swap)
                    with swap:
                        model(x)  # nobody asks for what it saved
                swap.statistics()
                self.assertEqual((swap._by_number, swap._live, used(swap)), ({}, {}, 0))
                gc.collect()
                self.assertEqual([one for one in gc.get_objects() if isinstance(one, Handle)], [])

    def test_threads_at_once_have_their_own_gradients(self):
        models, (x, y) = [net() for _ in range(3)], data(48)
        for model in models:
            model[-2].p = 0.0  # random numbers are all threads'
        expected = gradients(models[0], x, y, Swap(BIG, "none", "memory=64MiB"))
        for policy in ("none", "swap-all"):
            swap, got = Swap(BIG, policy, "memory=256MiB"), [None] * len(models)

            def train(index):
                for _ in range(8):
                    got[index] = gradients(models[index], x, y, swap)

            threads = [threading.Thread(target=train, args=(index,)) for index in range(len(models))]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            for gotten in got:
                self.same([gotten], [expected])
            self.assertEqual(used(swap), 0)

    def test_a_change_in_place_is_an_error_as_without_it(self):
        swap = Swap(BIG, "none", "memory=64MiB")
        x = torch.randn(64, 512, requires_grad=True)
        for _ in range(2):
            with swap:
                y = x.exp()
                z = y.sum()
            y.mul_(2)
            with self.assertRaisesRegex(RuntimeError, "modified by an inplace operation: it is at version 1"):
                z.backward()

    def test_what_is_written_uncounted_after_a_save_is_in_the_next_one(self):
        weights = torch.randn(512, 512, requires_grad=True)

        def work(pause=lambda: None):
            x = torch.full((512, 512), 0.5)
            first = (x @ weights).tanh().sum()
            pause()
            x.data.mul_(3)  # counted by nobody
            return first, (x @ weights).tanh().sum()

        def gradients_of(losses):
            return [torch.autograd.grad(loss, weights)[0] for loss in losses]

        written, again = gradients_of(work())
        with torch.no_grad():
            slopes = 1 - (torch.full((512, 512), 0.5) @ weights).tanh().square()
        as_it_left = torch.full((512, 512), 0.5).t() @ slopes
        for saves_between in (0, 1):  # at which what has been copied leaves
            swap = Swap(BIG, "swap-all", "memory=256MiB")
            for _ in range(4):
                with swap:
                    losses = work(lambda: (time.sleep(0.02), *(weights.exp() for _ in range(saves_between))))
                first, second = gradients_of(losses)
                self.assertTrue(torch.equal(second, again))
                self.assertTrue(torch.equal(first, written) or torch.allclose(first, as_it_left, rtol=1e-4))

    def test_one_that_lies_otherwise_in_the_same_storage_is_given_as_it_lay(self):
        weights = torch.randn(512, 512, requires_grad=True)
        x = torch.randn(512, 512) / 512

        def work():
            y = (x @ weights).exp()
            return (y @ y.t()).tanh().sum() + (y[:64, ::2] * y[64:128, 1::2]).sum()

        expected = torch.autograd.grad(work(), weights)[0]
        for policy in ("none", "swap-all"):
            swap = Swap(BIG, policy, "memory=256MiB")
            for _ in range(3):
                with swap:
                    loss = work()
                self.assertTrue(torch.equal(torch.autograd.grad(loss, weights)[0], expected))


if __name__ == "__main__":
    unittest.main()
