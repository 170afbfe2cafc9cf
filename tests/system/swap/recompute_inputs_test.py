#!/usr/bin/env python3
"""Blocks that are given what cannot be kept, with hooks, in the hands of torch.jit: left alone; and how it is noticed
that one does something else the second time."""
import collections
import enum
import gc
import io
import random
import unittest
import warnings
import weakref

from scene import BIG, Swap

import torch  # after scene, which skips without it
from blocks import ALL, BLOCKS, NONE, STEPS, WIDTH, Block, Changes, batch, block
from torch import nn


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
        sparse = torch.eye(4).to_sparse_csr()
        for given in ([torch.eye(4).to_sparse()], [sparse], [torch.quantize_per_tensor(torch.eye(4), 0.1, 0, torch.quint8)]):
            with self.subTest(given):
                self.run_with(given, ALL)
        for given in (collections.UserDict(x=2.0), object(), {1, 2}, iter([1]), lambda: 1, [random.Random(1)]):
            with self.subTest(type(given)):
                self.run_with(given, NONE)

    def test_inputs_by_any_name(self):
        class Named(Block):
            def forward(self, x, module):
                return super().forward(x) * module

        class Net(nn.Sequential):
            def forward(self, x):
                for each in self:
                    x = each(x, module=2)
                return x

        self.same_as_plain(lambda: Net(*[Named() for _ in range(BLOCKS)]), ALL)

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
    unittest.main()
