#!/usr/bin/env python3
"""Segments that are computed again: the same gradients, running means and random numbers."""
import copy
import time
import unittest
import unittest.mock
import warnings

from scene import BIG, Case, Residual, Swap, net, train, used

import torch  # after scene, which skips without it
from tierpilot.swapping.segments import blocks_of

STEPS = (24, 24, 24, 9, 24, 24, 9, 24)


class Block(torch.nn.Module):
    """Random numbers, running means, changes in place, a block within."""

    def __init__(self, inner=True):
        super().__init__()
        self.layer = torch.nn.Linear(64, 64)
        self.norm = torch.nn.BatchNorm1d(64)
        self.within = torch.nn.Sequential(Block(False), torch.nn.Dropout(0.3)) if inner else None

    def forward(self, x, scale=None):
        x = torch.nn.functional.dropout(torch.relu_(self.norm(self.layer(x))), 0.4, self.training)
        if self.within is not None:
            x = self.within(x)
        return x if scale is None else x * scale


def deep():
    torch.manual_seed(4)
    return torch.nn.Sequential(*[Block() for _ in range(4)], torch.nn.Linear(64, 3))


def run(swap, model, steps=6, forward=None):
    """Gradients, running means and the random numbers that come next."""
    torch.manual_seed(9)
    seen = []
    for step in range(steps):
        x = torch.randn(512, 64, generator=torch.Generator().manual_seed(step))
        model.zero_grad()
        if swap is None:
            loss = (forward or model)(x).square().mean()
        else:
            with swap:
                loss = (forward or model)(x).square().mean()
        loss.backward()
        seen.append([p.grad.clone() for p in model.parameters()] + [b.clone() for b in model.buffers()])
        seen.append([torch.rand(3)])
    return seen


class Recompute(Case):
    def test_gradients_means_and_random_numbers_are_those_without(self):
        plain = run(None, deep())
        for policy, budget in (("checkpoint", BIG), ("swap", "1MiB"), ("swap-all", BIG)):
            with self.subTest(policy=policy), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                swap = Swap(budget, policy, "memory=256MiB", recompute=True)
                self.same(run(swap, deep()), plain)
                said = swap.statistics()
                self.assertEqual(said["segments"], 6 * 4)
                if policy == "checkpoint":  # all but the first step's
                    self.assertEqual(said["recomputed_segments"], 5 * 4)
                self.assertEqual(used(swap), 0)

    def test_short_batches_and_evaluation_in_between(self):
        plain = train(None, STEPS)
        swap = Swap(BIG, "checkpoint", "memory=64MiB")
        self.same(train(swap, STEPS), plain)
        self.assertGreater(swap.statistics()["recomputed_segments"], 4)

    def test_less_is_held(self):
        held = {}
        for policy in ("none", "checkpoint"):
            swap = Swap(BIG, policy, "memory=64MiB")
            run(swap, deep(), steps=1)
            first = swap.statistics()["saved_bytes"]
            run(swap, deep(), steps=2)
            held[policy] = swap.statistics()["saved_bytes"] - first
        self.assertLess(held["checkpoint"], 0.8 * held["none"])

    def test_inputs_leave_until_they_are_needed(self):
        from tierpilot.swapping.recompute import Recomputed
        from tierpilot.swapping.saved import Untouched

        swap = Swap(BIG, "swap-all", "memory=64MiB")
        layer = torch.nn.Linear(64, 64)
        x = torch.randn(4096, 64)
        copies = [0]

        def gradient(recomputed):
            layer.zero_grad()
            with swap:
                made = x * 1
                if recomputed:
                    segment = Recomputed(lambda y: layer(y) * 2, (layer,), ((made,), {}), swap._pack, Untouched)
                    out = segment.forward(made)
                else:
                    out = layer(made) * 2
                del made
            while swap.statistics()["copies_out"] == copies[0]:
                time.sleep(0.01)
            swap._reap()
            copies[0] += 1
            out.square().sum().backward()
            return layer.weight.grad.clone()

        plain = gradient(False)
        before = swap.statistics()["copies_in"]
        self.assertTrue(torch.equal(gradient(True), plain))
        self.assertGreater(swap.statistics()["copies_in"], before)

    def test_blocks_that_the_program_computes_again_itself(self):
        from torch.utils.checkpoint import checkpoint

        class Mixed(torch.nn.Module):
            def __init__(self, which, **how):
                super().__init__()
                torch.manual_seed(4)
                self.blocks = torch.nn.ModuleList(Block(False) for _ in range(6))
                for block in self.blocks:
                    block.norm = torch.nn.LayerNorm(64)  # no means, which would be counted twice
                self.which, self.how = which, how

            def forward(self, x):
                for number, block in enumerate(self.blocks):
                    work = (lambda y, block=block: block(y.tanh()).exp()) if number == 2 else block
                    x = checkpoint(work, x, **self.how) if number in self.which else block(x)
                return x

        for which in ((0,), range(6), (0, 2, 4), (1, 2, 3, 5)):
            for how in ({"use_reentrant": False}, {}):
                if how or 0 not in which:  # the latter needs an input with a gradient
                    plain = run(None, Mixed(which, **how))
                    with self.subTest(which=which, how=how):
                        self.same(run(Swap(BIG, "checkpoint"), Mixed(which, **how)), plain)
                        with Swap(BIG, "checkpoint") as swap:  # around the backward passes too
                            self.same(run(None, Mixed(which, **how)), plain)
                        # All but the first step's that are not the program's.
                        self.assertEqual(swap.statistics()["recomputed_segments"], 5 * (6 - len(which)))

    def test_a_graph_that_is_kept_is_computed_again_each_time(self):
        model = torch.nn.Sequential(*[Block() for _ in range(3)])
        swap = Swap(BIG, "checkpoint")
        x = torch.randn(512, 64, requires_grad=True)
        for _ in range(2):
            with swap:
                y = model(x).sum()
            one = torch.autograd.grad(y, x, retain_graph=True)[0]
            two = torch.autograd.grad(y, x)[0]
            self.assertTrue(torch.equal(one, two))
        self.assertEqual(swap.statistics()["recomputed_segments"], 3)

    def test_what_changes_its_input_or_its_buffers_is_never_computed_again(self):
        class Counts(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.layer = torch.nn.Linear(64, 64)
                self.register_buffer("calls", torch.zeros(1))

            def forward(self, x):
                self.calls += 1
                return self.layer(x) * self.calls.item()

        class Rectifies(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.layer = torch.nn.Linear(64, 64)

            def forward(self, x):
                return self.layer(torch.relu_(x))

        def model():
            torch.manual_seed(1)
            return torch.nn.Sequential(Block(), Counts(), Block(), Rectifies(), Block())

        plain = run(None, model())
        swap = Swap(BIG, "checkpoint")
        self.same(run(swap, model()), plain)
        self.assertEqual(swap.statistics()["recomputed_segments"], 5 * 3)

    def test_an_exception_in_a_segment_or_in_computing_it_again(self):
        model = deep()
        plain = run(None, copy.deepcopy(model))
        swap = Swap(BIG, "checkpoint")
        self.same(run(swap, copy.deepcopy(model)), plain)
        broken = copy.deepcopy(model)
        with swap:
            loss = broken(torch.randn(512, 64)).sum()
        random = torch.get_rng_state()
        means = [b.clone() for b in broken.buffers()]
        with unittest.mock.patch.object(torch.nn.Linear, "forward", lambda layer, x: 1 / 0):
            with self.assertRaisesRegex((RuntimeError, ZeroDivisionError), "division by zero"):
                loss.backward()
        self.assertTrue(torch.equal(torch.get_rng_state(), random))
        self.same([list(broken.buffers())], [means])
        broken[2].layer.forward = lambda x: 1 / 0
        with self.assertRaises(ZeroDivisionError), swap:
            broken(torch.randn(512, 64))
        del loss, broken
        self.same(run(swap, copy.deepcopy(model)), plain)

    def test_a_block_that_raised_once_is_computed_again_later(self):
        model, swap = deep(), Swap(BIG, "checkpoint")

        def recomputed_by_a_step():
            before = swap.statistics()["recomputed_segments"]
            with swap:
                loss = model(torch.randn(512, 64)).sum()
            loss.backward()
            return swap.statistics()["recomputed_segments"] - before

        self.assertEqual(recomputed_by_a_step(), 0)
        all_of_them = recomputed_by_a_step()
        self.assertGreater(all_of_them, 2)
        forward = model[2].layer.forward
        model[2].layer.forward = lambda x: 1 / 0
        with self.assertRaises(ZeroDivisionError), swap:
            model(torch.randn(512, 64))
        model[2].layer.forward = forward
        recomputed_by_a_step()
        self.assertEqual(recomputed_by_a_step(), all_of_them)

    def test_what_depends_on_more_than_its_inputs_is_an_error_and_no_wrong_gradient(self):
        class Moody(torch.nn.Module):
            calls = 0

            def __init__(self):
                super().__init__()
                self.layer = torch.nn.Linear(64, 64)

            def forward(self, x):
                Moody.calls += 1
                y = self.layer(x)
                return y.tanh() if Moody.calls % 2 else y * 2

        model = torch.nn.Sequential(Moody(), Moody(), Block())
        swap = Swap(BIG, "checkpoint")
        with self.assertRaisesRegex(RuntimeError, "depends on more than its inputs"):
            run(swap, model, steps=2)

    def test_a_weight_that_changes_before_the_backward_pass_is_refused(self):
        model = deep()
        swap = Swap(BIG, "checkpoint")
        run(swap, model, steps=2)
        with swap:
            loss = model(torch.randn(512, 64)).sum()
        with torch.no_grad():
            model[1].layer.bias.add_(1)
        with self.assertRaisesRegex(RuntimeError, "modified by an inplace"):
            loss.backward()

    def test_modes_are_those_of_the_forward_pass(self):
        model = deep()
        plain = copy.deepcopy(model)
        swap = Swap(BIG, "checkpoint")
        run(swap, model, steps=2)
        run(None, plain, steps=2)
        x = torch.randn(512, 64)
        for each in (plain, model):
            torch.manual_seed(3)
            with swap:
                loss = each(x).sum()
            each.eval()
            each.zero_grad()
            loss.backward()
            self.assertFalse(each[0].norm.training)
        self.same([[p.grad for p in model.parameters()]], [[p.grad for p in plain.parameters()]])

    def test_a_copy_of_a_model_has_its_own_weights(self):
        swap = Swap(BIG, "checkpoint")
        model = deep()
        run(swap, model, steps=1)
        other = copy.deepcopy(model)
        with torch.no_grad():
            other[0].layer.weight.zero_()
        self.same(run(swap, copy.deepcopy(other)), run(None, other))
        call, forward = torch.nn.Module.__call__, torch.nn.Sequential.forward
        with swap:
            self.assertIsNot(torch.nn.Module.__call__, call)
        self.assertIs(torch.nn.Module.__call__, call)
        self.assertIs(torch.nn.Sequential.forward, forward)


class Blocks(Case):
    def test_sequences_of_blocks_and_runs_of_layers(self):
        layers = torch.nn.Sequential(*[torch.nn.Linear(4, 4) for _ in range(9)])
        self.assertEqual([(b, e) for _, b, e in blocks_of(layers)], [(0, 3), (3, 6), (6, 9)])
        model = net()
        kinds = [type(block).__name__ for block in blocks_of(model)]
        self.assertEqual(kinds.count("Residual"), 2)
        self.assertEqual(blocks_of(torch.nn.Linear(3, 3)), [])

        class Net(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.stem = torch.nn.Conv2d(3, 8, 3)
                self.layers = torch.nn.Sequential(
                    torch.nn.Sequential(Residual(8), Residual(8)), torch.nn.Sequential(Residual(8), Residual(8))
                )
                self.more = torch.nn.ModuleList([Residual(8), Residual(8)])

        self.assertEqual([type(block) for block in blocks_of(Net())], [Residual] * 6)


if __name__ == "__main__":
    unittest.main()
