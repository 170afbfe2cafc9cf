#!/usr/bin/env python3
"""Blocks that read more than their inputs and weights: computed again with what they read, left alone, or an error,
and never another gradient."""
import collections
import contextlib
import enum
import functools
import io
import random
import sys
import unittest
import warnings

from scene import BIG, Case, Swap

import torch  # after scene, which skips without it
from torch import nn
from torch.nn.utils import stateless

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


class RandomNumbers(Changes):
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


class Inputs(Changes):
    class Takes(Block):
        def forward(self, x, given):
            return super().forward(x) * (given["x"] if hasattr(given, "data") else 1)

    def run_with(self, given, recomputed):
        class Net(nn.Sequential):
            def forward(self, x):
                for each in self:
                    x = each(x, given)
                return x

        self.same_as_plain(lambda: Net(*[self.Takes() for _ in range(BLOCKS)]), recomputed)

    def test_only_those_that_never_change_and_lists_of_them_are_kept(self):
        Pair = collections.namedtuple("Pair", "a b")
        Kind = enum.Enum("Kind", "ONE")
        for given in (None, 2, "text", torch.float32, torch.device("cpu"), torch.Size([1]), slice(1, 2), ..., Kind.ONE,
                      [1, (2.5, {"a": b"x"})], Pair(1, torch.ones(3))):
            with self.subTest(given):
                self.run_with(given, ALL)
        for given in (collections.UserDict(x=2.0), object(), {1, 2}, iter([1]), lambda: 1, [random.Random(1)]):
            with self.subTest(type(given)):
                self.run_with(given, NONE)

    def test_objects_that_blocks_update(self):
        class Graph:
            pass

        class Updates(Block):
            def forward(self, graph):
                graph.x = super().forward(graph.x)
                return graph

        def forward(model, x):
            graph = Graph()
            graph.x = x * 1
            return model(graph).x

        self.same_as_plain(Updates, NONE, forward=forward)

    def test_tensors_of_inference(self):
        class Net(nn.Sequential):
            def forward(self, x):
                with torch.inference_mode():
                    mask = {"x": torch.ones(WIDTH)}
                for each in self:
                    x = each(x, mask)
                return x

        self.same_as_plain(lambda: Net(*[self.Takes() for _ in range(BLOCKS)]), NONE)

    def test_the_same_tensor_twice(self):
        class Attends(nn.Module):
            def __init__(self):
                super().__init__()
                self.attention = nn.MultiheadAttention(WIDTH, 2, batch_first=True)

            def forward(self, q, k):
                return self.attention(q, k, k, need_weights=False)[0] if q is k else q * 0

        class Net(nn.Sequential):
            def forward(self, x):
                x = x.view(16, 32, WIDTH)
                for each in self:
                    x = each(x, x)
                return x

        self.same_as_plain(lambda: Net(*[Attends() for _ in range(BLOCKS)]), ALL)


class Hooks(Changes):
    def test_a_block_with_hooks_is_left_alone_and_they_run_once(self):
        for register in ("register_forward_hook", "register_forward_pre_hook"):
            seen = []

            def make():
                made = Block()
                getattr(made.first, register)(lambda module, *given: seen.append(1))
                return made

            self.same_as_plain(make, NONE)
            self.assertEqual(len(seen), 2 * STEPS * BLOCKS)

    def test_hooks_on_all_modules(self):
        seen = []
        hook = nn.modules.module.register_module_forward_hook(lambda module, *given: seen.append(1))
        try:
            self.same_as_plain(Block, NONE)
        finally:
            hook.remove()
        self.assertEqual(len(seen), 2 * STEPS * (1 + 3 * BLOCKS))


class Compiled(Changes):
    def same(self, one, other):
        """Up to the last bits, in which two runs of what torch.jit compiled differ by themselves."""
        self.assertEqual(len(one), len(other))
        for ours, plain in zip(one, other):
            for a, b in zip(ours, plain):
                self.assertTrue(torch.allclose(a, b, rtol=1e-4, atol=1e-8))

    def model(self):
        torch.manual_seed(1)
        return nn.Sequential(*[nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.ReLU()) for _ in range(BLOCKS)],
                             nn.Linear(WIDTH, WIDTH), nn.Tanh(), nn.Linear(WIDTH, WIDTH))

    def test_models_are_scripted_and_traced_as_they_are(self):
        def gradients(compiled):
            compiled(batch(0)).square().mean().backward()
            return [p.grad.clone() for p in compiled.parameters()]

        for compile in (torch.jit.script, lambda model: torch.jit.trace(model, batch(1))):
            plain = gradients(compile(self.model()))
            with Swap(BIG, "checkpoint", "memory=64MiB"), warnings.catch_warnings():
                warnings.simplefilter("error", torch.jit.TracerWarning)
                model = self.model()
                compiled = compile(model)
                self.same([gradients(compiled)], [plain])
                saved = io.BytesIO()
                torch.jit.save(compiled, saved)

    def test_scripted_blocks_are_left_alone(self):
        self.same_as_plain(lambda: torch.jit.script(Plain()), NONE)
        self.same_as_plain(block(lambda self, hidden: self.inner(hidden),
                                 lambda self: setattr(self, "inner", torch.jit.script(Plain()))), NONE)


class Plain(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(WIDTH, WIDTH)

    def forward(self, x):
        return torch.tanh(self.layer(x))


class Comparison(Changes):
    def test_another_operator_or_layout_of_the_same_shape_is_noticed(self):
        for other in (lambda y: y.sigmoid(), lambda y: y.t().contiguous().t().tanh()):
            class Moody(Block):
                calls = 0

                def forward(self, x):
                    Moody.calls += 1
                    y = self.first(x)
                    # Three in the first step, three in the second one's forward pass, three again.
                    return self.second(y.tanh() if Moody.calls <= 2 * BLOCKS else other(y))

            with self.subTest(), self.assertRaisesRegex(RuntimeError, "depends on more than its inputs"):
                self.gradients(Swap(BIG, "checkpoint", "memory=64MiB"), Moody)

    def test_nothing_is_held_when_it_is_over(self):
        import gc
        import weakref

        model = nn.Sequential(*[Block() for _ in range(BLOCKS)])
        swap = Swap(BIG, "checkpoint", "memory=64MiB")
        gone = []
        gc.collect()
        gc.disable()
        try:
            for step in range(STEPS):
                x = batch(step).requires_grad_()
                with swap:
                    y = model(x)
                if step % 2:
                    y.sum().backward()
                gone.append(weakref.ref(x))
                del x, y
            self.assertEqual([ref() for ref in gone], [None] * STEPS)
        finally:
            gc.enable()


if __name__ == "__main__":
    sys.exit(unittest.main())
