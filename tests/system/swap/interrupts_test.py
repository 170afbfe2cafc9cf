#!/usr/bin/env python3
"""Ctrl-C, and what else raises an exception from a signal's handler, at any moment of a training: the program sees each,
and goes on as before if it wants to."""
import collections
import contextlib
import functools
import operator
import os
import random
import signal
import sys
import unittest

from scene import BIG, Case, Swap, data, net, used
from state_scene import OPTIMISERS, Training, everything_leaves

import torch  # after scene, which skips without it

TRIES = 60 if "TIERPILOT_TEST_LONG" in os.environ else 20


class Interrupts(Case):
    def setUp(self):
        self.raised = self.seen = 0
        self.ignored = []
        before = signal.signal(signal.SIGALRM, self.interrupt), sys.unraisablehook
        sys.unraisablehook = lambda info: self.ignored.append(f"{info.exc_type.__name__}: {info.err_msg} {info.object}")
        self.addCleanup(lambda: (signal.signal(signal.SIGALRM, before[0]), setattr(sys, "unraisablehook", before[1])))

    def interrupt(self, *_):
        self.raised += 1
        raise KeyboardInterrupt(self.raised)

    def interrupted(self, work, tries=TRIES):
        """Runs it over and over, and interrupts that so many times; how many interrupts it did not see."""
        moments = random.Random(3)
        lost = 0
        for _ in range(tries):
            try:
                # Three runs of it at most, wherever in them.
                signal.setitimer(signal.ITIMER_REAL, moments.uniform(1e-4, 3 * self.run_s))
                while self.raised == self.seen + lost:
                    work()
                lost += 1
            except (KeyboardInterrupt, RuntimeError) as error:
                # PyTorch 1 makes a RuntimeError of all that hooks raise.
                if isinstance(error, RuntimeError) and not str(error).startswith("KeyboardInterrupt"):
                    raise
                self.seen += 1
                torch.set_grad_enabled(True)  # where it came as no_grad ended, PyTorch leaves them disabled
        return lost

    def measure(self, work):
        work()
        signal.setitimer(signal.ITIMER_REAL, 3600)
        work()
        self.run_s = 3600 - signal.setitimer(signal.ITIMER_REAL, 0)[0]

    def test_each_is_seen_and_trainings_go_on(self):
        x, y = data(48)
        for settings in ({"policy": "none"}, {"policy": "swap-all"}, {"policy": "swap-all", "recompute": True}):
            with self.subTest(**settings):
                self.raised = self.seen = 0
                model = net()
                model[-2].p = 0.0  # the same gradients in each step
                swap = Swap(BIG, tiers="memory=256MiB", **settings)

                def step(around=swap):
                    for module in model.modules():
                        if isinstance(module, torch.nn.BatchNorm2d):
                            module.reset_running_stats()
                    with around:
                        loss = torch.nn.functional.cross_entropy(model(x), y)
                    model.zero_grad()
                    loss.backward()
                    return [p.grad for p in model.parameters()]

                expected = [gradient.clone() for gradient in step(contextlib.nullcontext())]
                self.measure(step)
                lost = self.interrupted(lambda: self.same([step()], [expected]))
                self.assertEqual((lost, self.ignored), (0, []))
                self.same([step()], [expected])
                self.assertEqual(used(swap), 0)
                self.assertEqual((swap._by_number, swap._live), ({}, {}))

    def test_states_of_optimisers_stay_readable(self):
        swap = everything_leaves()
        for name in ("adamw", "own"):
            with self.subTest(optimiser=name):
                self.raised = self.seen = 0
                training = Training(OPTIMISERS[name], swap, width=384)
                self.measure(training.step)
                # Some are interrupted in the middle of an optimiser's step, as without Tierpilot.
                self.assertEqual((self.interrupted(training.step), self.ignored), (0, []))
                training.slow_steps(1)
                self.assertTrue(all(value.isfinite().all() for value in training.values()))
                training.steps(1)
                del training
                self.assertEqual(used(swap), 0)
                self.assertEqual(swap._by_number, {})

    def test_nor_is_one_lost_that_arrives_as_a_state_ends(self):
        swap = everything_leaves()
        training = Training(OPTIMISERS["own"], swap, width=384).slow_steps(2)
        state = training.optimiser.state[training.model[0].weight]
        before, size = used(swap), state["mean"].numel() * 4
        training.slow_steps(1)
        calls = (  # with no Python in between
            functools.partial(signal.setitimer, signal.ITIMER_REAL, 1e-4),
            functools.partial(sum, range(10**6)),
            functools.partial(dict.clear, state),
        )
        with self.assertRaises(KeyboardInterrupt):
            collections.deque(map(operator.call, calls))
        self.assertEqual((before - used(swap), self.ignored), (size, []))

    def test_what_python_would_forget_is_raised_by_the_next_call(self):
        swap = Swap(BIG, "none", "memory=64MiB")
        with swap:
            made = torch.randn(256, 512, requires_grad=True).exp()
        see_to_ended = swap._see_to_ended

        def interrupted():
            swap._see_to_ended = see_to_ended
            raise KeyboardInterrupt

        swap._see_to_ended = interrupted
        del made
        with self.assertRaises(KeyboardInterrupt):
            swap.statistics()
        self.assertEqual((swap._by_number, self.ignored), ({}, []))


class Cut(Case):
    """An end that a handler cut off, behind the call that gave its number back."""

    def cut(self, swap, work):
        drop = swap._core.drop

        def cut(number):
            drop(number)
            raise KeyboardInterrupt

        swap._core.drop = cut
        with self.assertRaises((KeyboardInterrupt, RuntimeError)):
            work()
        swap._core.drop = drop

    def test_it_ends_nothing_that_is_saved_after_it(self):
        weights = torch.randn(512, 8, requires_grad=True)

        def work():
            return (torch.full((64, 512), 0.5) @ weights).tanh().sum()

        expected = torch.autograd.grad(work(), weights)[0]
        swap = Swap(BIG, "none", "memory=64MiB")
        with swap:
            loss = work()
            self.cut(swap, loss.backward)
            loss = work()  # may have the number of what ended
        swap.statistics()  # which sees to ends
        self.assertTrue(torch.equal(torch.autograd.grad(loss, weights)[0], expected))
        self.assertEqual(used(swap), 0)
        self.assertEqual((swap._by_number, swap._live), ({}, {}))

    def test_nor_a_state_that_leaves_after_it(self):
        def train(swap):
            torch.manual_seed(3)
            weights = torch.randn(512, 64, requires_grad=True)
            optimiser = torch.optim.SGD([weights], lr=0.1, momentum=0.9)
            for step in range(4):
                optimiser.zero_grad()
                with swap or contextlib.nullcontext():
                    loss = (torch.full((64, 512), 0.5) @ weights).tanh().sum()
                if swap and step == 0:
                    self.cut(swap, loss.backward)
                else:
                    loss.backward()
                optimiser.step()
                if swap:
                    swap.statistics()
            return weights.detach()

        expected = train(None)
        self.assertTrue(torch.equal(train(Swap(BIG, "swap-all", "memory=64MiB", states=True)), expected))


if __name__ == "__main__":
    unittest.main()
