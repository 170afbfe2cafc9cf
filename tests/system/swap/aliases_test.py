#!/usr/bin/env python3
"""Tensors that share memory otherwise than as views: by other version counters, with arrays, with memory that is replaced."""
import gc
import time
import unittest

from scene import BIG, Case, Swap, used

import torch  # after scene, which skips without it

WORDS = 1 << 16
LEAVING = ("swap", "swap-all", "capuchin", "q-published")


def settle(swap):
    """What is under way has left."""
    for _ in range(20):
        time.sleep(0.002)
        swap._reap()


class Halves(torch.nn.Module):
    """As the cells of recurrent nets do it: parts of one storage, each with a counter of its own."""

    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(128, 1024)

    def forward(self, x):
        first, second = self.linear(x).unsafe_chunk(2, 1)
        first.sigmoid_()
        second.tanh_()
        return first * second


class Aliases(Case):
    def trained(self, make, x, swap, steps=4):
        torch.manual_seed(1)
        model, seen = make(), []
        for _ in range(steps):
            model.zero_grad()
            with swap:
                made = model(x)
                loss = (made[0] if isinstance(made, tuple) else made).square().mean()
            settle(swap)
            loss.backward()
            seen.append([p.grad.clone() for p in model.parameters()])
        return seen

    def test_parts_of_a_storage_with_counters_of_their_own(self):
        nets = {
            "chunks": (Halves, torch.randn(256, 128)),
            "LSTM": (lambda: torch.nn.LSTM(128, 128), torch.randn(12, 128, 128)),
            "GRU": (lambda: torch.nn.GRU(128, 128), torch.randn(12, 128, 128)),
        }
        for name, (make, x) in nets.items():
            plain = self.trained(make, x, Swap(BIG, "none"))
            for policy in LEAVING:
                with self.subTest(net=name, policy=policy):
                    swap = Swap(BIG, policy, "memory=256MiB")
                    self.same(self.trained(make, x, swap), plain)
                    gc.collect()
                    self.assertEqual(used(swap), 0)
            self.assertGreater(swap.statistics()["saves"], 0)

    def test_such_parts_leave_memory(self):
        swap = Swap(BIG, "swap-all", "memory=256MiB")
        model, x = Halves(), torch.randn(256, 128)
        with swap:
            loss = model(x).sum()
        settle(swap)
        self.assertGreater(used(swap), 256 * 1024 * 4)
        loss.backward()
        self.assertGreater(swap.statistics()["copies_in"], 0)

    def test_what_is_behind_another_counter_counts_as_it_is(self):
        for policy in ("none", "swap-all"):
            for change in ("moved before", "data", "array"):
                with self.subTest(policy=policy, change=change):
                    swap = Swap(BIG, policy, "memory=64MiB")
                    w, x = torch.randn(WORDS, requires_grad=True), torch.ones(WORDS)
                    array = x.numpy()
                    if change == "array":
                        x = torch.from_numpy(array)
                    with swap:
                        y = (x * w).sum()
                        settle(swap)
                        if change == "moved before":
                            x.add_(1)
                            x = x.data
                        elif change == "data":
                            x.data.mul_(2)
                        else:
                            array[:] = 2
                        z = (x * w).sum()
                        settle(swap)
                    self.assertTrue(torch.equal(torch.autograd.grad(z, w)[0], torch.full((WORDS,), 2.0)))
                    del y

    def test_each_counter_tells_of_its_own_changes(self):
        for policy in ("none", "swap-all"):
            w, x = torch.randn(WORDS, requires_grad=True), torch.ones(WORDS)
            other = x.data
            with Swap("8GiB", policy, "memory=64MiB"):
                y, z = (x * w).sum(), (other * w).sum()
            x.add_(0)
            self.assertTrue(torch.equal(torch.autograd.grad(z, w)[0], torch.ones(WORDS)))
            try:
                torch.autograd.grad(y, w)
            except RuntimeError as error:
                self.assertIn("inplace operation", str(error))
            else:
                self.assertEqual(policy, "swap-all")

    def test_memory_that_is_replaced_while_its_copy_is_under_way(self):
        for tier in ("memory=512MiB", "dir:/var/tmp=512MiB"):
            with self.subTest(tier=tier):
                swap = Swap(BIG, "swap-all", tier)
                xs = [torch.full((1 << 20,), float(i)) for i in range(12)]
                ws = [torch.ones(1 << 20, requires_grad=True) for _ in xs]
                with swap:
                    y = sum((x * w).sum() for x, w in zip(xs, ws))
                for x in xs[4:]:
                    x.share_memory_()
                junk = [torch.full((1 << 20,), -777.0) for _ in range(12)]
                settle(swap)
                y.backward()
                for i, w in enumerate(ws):
                    self.assertTrue(torch.equal(w.grad, torch.full((1 << 20,), float(i))), i)
                del junk, y
                self.assertEqual(used(swap), 0)

    def test_tensors_without_a_storage_of_their_own_stay(self):
        from torch.autograd import forward_ad

        w = torch.randn(256, 256, requires_grad=True)
        zero = torch._efficientzerotensor(256, 256)
        with Swap(BIG, "swap-all", "memory=64MiB"):
            (w * zero).sum().backward()
            with forward_ad.dual_level():
                made = forward_ad.make_dual(w, torch.ones(256, 256)).exp() * w
                torch.autograd.grad(forward_ad.unpack_dual(made).tangent.sum(), w)
            nested = torch.nested.nested_tensor([torch.randn(128, 256), torch.randn(200, 256)])
            torch.nn.functional.linear(nested, w)
            if torch.backends.mkldnn.is_available():
                with torch.no_grad():
                    torch.nn.Conv2d(3, 4, 3)(torch.randn(1, 3, 8, 8).to_mkldnn())

    def test_a_backward_pass_in_inference_mode(self):
        def gradients(swap):
            torch.manual_seed(3)
            w = torch.randn(256, 256, requires_grad=True)
            with swap:
                loss = torch.nn.Sequential(torch.nn.Tanh(), torch.nn.Tanh())(torch.randn(256, 256) @ w).exp().sum()
            settle(swap)
            with torch.inference_mode():
                loss.backward()
            return [w.grad.clone()]

        plain = gradients(Swap(BIG, "none"))
        for policy in ("swap-all", "checkpoint"):
            with self.subTest(policy=policy):
                self.same([gradients(Swap(BIG, policy, "memory=64MiB"))], [plain])

    def test_what_was_handed_out_stays_where_another_thread_lets_it_leave(self):
        swap = Swap(BIG, "none", "memory=64MiB")
        x = torch.randn(WORDS)
        handle = swap._pack(x)
        given = handle.tensor()
        handle.stored.let_go()
        self.assertTrue(torch.equal(given, x))


if __name__ == "__main__":
    unittest.main()
