#!/usr/bin/env python3
"""Blocks that draw random numbers, hold and change what they read: computed again with what they read, left alone, or an
error, and never another gradient."""
import contextlib
import functools
import random
import unittest

from scene import BIG, Swap

import torch  # after scene, which skips without it
from blocks import ALL, BLOCKS, NONE, STEPS, WIDTH, Block, Changes, batch, block, numpy
from torch import nn
from torch.nn.utils import stateless


class RandomNumbers(Changes):
    def test_inputs_that_the_program_changes_afterwards(self):
        class Net(nn.Sequential):
            def forward(self, x):
                x = x * 1
                for each in self:
                    x += each(x)
                return x

        def residual():
            return Net(*[nn.Sequential(nn.ReLU(), nn.Linear(WIDTH, WIDTH)) for _ in range(BLOCKS)])

        self.same_as_plain(residual, NONE)

    def test_those_of_python_are_drawn_again(self):
        self.same_as_plain(block(lambda self, hidden: random.random()), ALL)

    @unittest.skipIf(numpy is None, "no NumPy")
    def test_those_of_numpy_are_drawn_again(self):
        self.same_as_plain(block(lambda self, hidden: float(numpy.random.rand() + numpy.random.randn())), ALL)

    def test_a_block_with_a_generator_of_its_own_is_left_alone(self):
        def torchs(self):
            self.own = torch.Generator().manual_seed(1)

        def pythons(self):
            self.own = {"generators": [random.Random(1)]}

        def method(self):
            self.own = random.Random(1).random

        self.same_as_plain(block(lambda self, hidden: torch.rand(hidden.shape, generator=self.own), torchs), NONE)
        self.same_as_plain(block(lambda self, hidden: self.own["generators"][0].random(), pythons), NONE)
        self.same_as_plain(block(lambda self, hidden: self.own(), method), NONE)

    @unittest.skipIf(numpy is None, "no NumPy")
    def test_one_with_a_generator_of_numpy_too(self):
        def new(self):
            self.own = numpy.random.default_rng(1)

        def old(self):
            self.own = numpy.random.RandomState(1)

        self.same_as_plain(block(lambda self, hidden: self.own.random(), new), NONE)
        self.same_as_plain(block(lambda self, hidden: self.own.rand(), old), NONE)

    def test_those_of_others_go_on_where_a_block_draws_none(self):
        swap = Swap(BIG, "checkpoint", "memory=64MiB")
        model = nn.Sequential(*[Block() for _ in range(BLOCKS)])
        drawn = []
        for step in range(STEPS):
            with swap:
                y = model(batch(step))
            # In the midst of a backward pass.
            y.register_hook(lambda gradient: drawn.append((random.random(), float(torch.rand(1)))))
            y.sum().backward()
            drawn.append((random.random(), float(torch.rand(1))))
        self.assertEqual(len(set(drawn)), 2 * STEPS)


class States(Changes):
    def test_a_block_that_changes_what_it_holds_is_left_alone(self):
        def anneal(self, hidden):
            self.tau *= 0.9
            return self.tau

        def average(self, hidden):
            self.mean = 0.9 * self.mean + 0.1 * hidden.detach().mean(0)
            return self.mean

        def remember(self, hidden):
            before, self.last = self.last, hidden.detach()
            return 1.0 if before is None else before

        def count(self, hidden):
            self.held["calls"][0] += 1
            return self.held["calls"][0]

        def take(self, hidden):
            return next(self.numbers)

        class Counter:
            calls = 0

        def count_in_object(self, hidden):
            self.counter.calls += 1
            return self.counter.calls

        for scale, begin in (
            (anneal, lambda self: setattr(self, "tau", 1.0)),
            (average, lambda self: self.register_buffer("mean", torch.ones(WIDTH))),
            (remember, lambda self: setattr(self, "last", None)),
            (count, lambda self: setattr(self, "held", {"calls": [0]})),
            (take, lambda self: setattr(self, "numbers", iter(range(100)))),
            (count_in_object, lambda self: setattr(self, "counter", Counter())),
        ):
            with self.subTest(scale.__name__):
                self.same_as_plain(block(scale, begin), NONE)

    def test_a_block_that_writes_its_weights_past_their_versions_is_left_alone(self):
        def learn(self, hidden):
            self.fast.data.mul_(0.9).add_(hidden.detach().mean(0), alpha=0.1)
            return self.fast

        def begin(self):
            self.fast = nn.Parameter(torch.ones(WIDTH))

        self.same_as_plain(block(learn, begin), NONE)

    def test_one_that_begins_to_do_so_ends_the_backward_pass_once(self):
        class Late(Block):
            calls, tau = 0, 1.0

            def scale(self, hidden):
                Late.calls += 1
                if Late.calls == 3 * BLOCKS + 1:
                    self.tau = 0.5
                return self.tau

        model = nn.Sequential(*[Late() for _ in range(BLOCKS)])
        swap = Swap(BIG, "checkpoint", "memory=64MiB")
        for step in range(STEPS):
            with swap:
                loss = model(batch(step)).sum()
            with self.assertRaisesRegex(RuntimeError, "for the first time") if step == 2 else contextlib.nullcontext():
                loss.backward()

    def test_what_is_replaced_before_the_backward_pass_is_as_it_was(self):
        def setup(self):
            self.register_buffer("shift", torch.ones(WIDTH))
            self.factor, self.held = 1.0, torch.ones(WIDTH)

        def scale(self, hidden):
            return self.shift * self.factor * self.held

        def replace(model, step):
            for number, each in enumerate(model):
                each.first.weight = nn.Parameter(each.first.weight.detach() * 1.5)
                each.shift = each.shift * 1.1
                each.factor = each.factor + 1
                each.held = each.held * 0.9
                each.second = nn.Linear(WIDTH, WIDTH)
            self.replaced = [(each.first.weight, each.shift, each.factor, each.held, each.second) for each in model]

        seen = []
        for context in (contextlib.nullcontext(), Swap(BIG, "checkpoint", "memory=64MiB")):
            seen.append(self.gradients(context, block(scale, setup), between=replace))
        self.same(*seen)

    def test_what_was_replaced_is_there_afterwards(self):
        model = nn.Sequential(*[block(lambda self, hidden: self.factor, lambda self: setattr(self, "factor", 1.0))()
                                for _ in range(BLOCKS)])
        swap = Swap(BIG, "checkpoint", "memory=64MiB")
        for step in range(STEPS):
            with swap:
                loss = model(batch(step)).sum()
            weights = [nn.Parameter(torch.randn(WIDTH, WIDTH)) for _ in model]
            for each, weight in zip(model, weights):
                each.first.weight, each.factor = weight, step + 2.0
            loss.backward()
            for each, weight in zip(model, weights):
                self.assertIs(each.first.weight, weight)
                self.assertIs(dict(each.named_parameters())["first.weight"], weight)
                self.assertEqual(each.factor, step + 2.0)
        self.assertEqual(swap.statistics()["recomputed_segments"], ALL)

    def test_a_buffer_or_what_an_attribute_holds_that_changes_before_the_backward_pass_is_refused(self):
        def change(model, step):
            for each in model:
                each.shift.add_(0.1)

        def change_held(model, step):
            for each in model:
                each.held["factor"] += 1

        buffered = block(lambda self, hidden: 1 + self.shift.sum().item(),
                         lambda self: self.register_buffer("shift", torch.zeros(WIDTH)))
        self.refused(buffered, change, "modified by an inplace")
        holding = block(lambda self, hidden: self.held["factor"], lambda self: setattr(self, "held", {"factor": 1}))
        self.refused(holding, change_held, "was changed after its forward pass")

        def retarget(model, step):
            for each in model:
                each.first.bias.data = each.first.bias.data + 1

        self.refused(Block, retarget, "modified by an inplace")

    def test_weights_that_other_weights_make_get_their_gradients(self):
        class Made(nn.Module):
            def __init__(self, inner):
                super().__init__()
                self.inner, self.maker = inner, nn.Linear(8, WIDTH * WIDTH)

            def forward(self, x):
                for turn in range(2):
                    for each in self.inner:
                        each.weight = self.maker(torch.full((8,), turn + 1.0)).view(WIDTH, WIDTH) / WIDTH
                        x = each(x)
                return x

        class Applies(Block):
            def forward(self, x):
                return torch.tanh(nn.functional.linear(torch.relu(self.first(x)), self.weight))

        self.same_as_plain(
            lambda: nn.Sequential(Made(nn.ModuleList([Applies() for _ in range(BLOCKS)]))), NONE,
            forward=lambda model, x: model[0](x))

    def test_functional_calls(self):
        def halved(model, x):
            weights = {name: weight * 0.5 for name, weight in model.named_parameters()}
            return stateless.functional_call(model, weights, (x,))

        def detached(model, x):
            weights = {name: (weight.detach() * 0.5).requires_grad_() for name, weight in model.named_parameters()}
            y = stateless.functional_call(model, weights, (x,))
            for name, weight in model.named_parameters():  # their gradients are what is compared
                weights[name].register_hook(functools.partial(setattr, weight, "grad"))
            return y

        for forward in (halved, detached):
            plain = self.gradients(contextlib.nullcontext(), Block, forward=forward)
            swap = Swap(BIG, "checkpoint", "memory=64MiB")
            self.same(self.gradients(swap, Block, forward=forward), plain)

    def test_running_means_that_are_read(self):
        class Renormalises(nn.BatchNorm1d):
            def forward(self, x):
                return super().forward(x) * self.running_var.sqrt()

        def means(kind):
            return lambda self: setattr(self, "norm", kind(WIDTH))

        def between(model, step):
            model(batch(step + 10))

        derived = block(lambda self, hidden: self.norm(hidden), means(Renormalises))
        self.same_as_plain(derived, NONE)
        exact = block(lambda self, hidden: self.norm(hidden) * (self.norm.running_var * 1), means(nn.BatchNorm1d))
        self.same_as_plain(exact, ALL, between=between)

        def by_hand(self, hidden):  # changes no version
            y = nn.functional.batch_norm(hidden, self.mean, self.variance, training=True)
            return y * (self.variance * 1)

        def buffers(self):
            self.register_buffer("mean", torch.zeros(WIDTH))
            self.register_buffer("variance", torch.ones(WIDTH))

        self.same_as_plain(block(by_hand, buffers), NONE)


if __name__ == "__main__":
    unittest.main()
