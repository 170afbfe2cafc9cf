#!/usr/bin/env python3
"""tierpilot.swap with a real PyTorch: values never change, whatever leaves memory."""
import contextlib
import os
import tempfile
import time
import unittest
import warnings

from scene import BIG, Case, Swap, data, net, train, used

import torch  # after scene, which skips without it


class Values(Case):
    def test_gradients_are_those_without_to_the_last_bit(self):
        plain = train(None)
        for policy in ("swap-all", "swap", "capuchin", "vdnn", "q-published", "none"):
            for budget in (BIG, "1MiB"):
                with self.subTest(policy=policy, budget=budget), warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    swap = Swap(budget, policy, "memory=256MiB")
                    self.same(train(swap), plain)
                    said = swap.statistics()
                    if policy == "swap-all" or budget == "1MiB" and policy == "swap":
                        self.assertGreater(said["copies_out"], 20)
                        self.assertGreater(said["copies_in"], 20)
                    self.assertEqual(used(swap), 0)

    def test_what_an_operator_fills_after_it_has_saved_it(self):
        def gradients(swap):
            torch.manual_seed(3)
            layer, x = torch.nn.Linear(256, 256), torch.randn(1024, 256)
            found = []
            for _ in range(4):
                layer.zero_grad()
                with swap:
                    y = torch.nn.functional.rrelu(layer(x), training=True)
                    # A slope for each, which the program gives; saved twice by another operator behind that.
                    slopes = torch.empty_like(y)
                    y = torch._C._nn.rrelu_with_noise(y * 2, slopes, 0.1, 0.3, True)
                    (y * slopes * slopes).square().mean().backward()
                found.append([layer.weight.grad.clone()])
            return found

        plain = gradients(contextlib.nullcontext())
        for policy in ("swap-all", "swap", "checkpoint"):
            for budget in (BIG, "1MiB"):
                with self.subTest(policy=policy, budget=budget), warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    self.same(gradients(Swap(budget, policy, "memory=256MiB")), plain)

    def test_one_operator_that_saves_a_tensor_twice(self):
        class Twice(torch.autograd.Function):
            @staticmethod
            def forward(run, x):
                mask = (x > 0).float()
                run.save_for_backward(mask, mask, mask[:512])
                return x * mask

            @staticmethod
            def backward(run, gradient):
                mask, again, half = run.saved_tensors
                return gradient * mask * again * torch.cat((half, mask[512:]))

        def gradient(swap):
            x = torch.randn(1024, 256, generator=torch.Generator().manual_seed(3), requires_grad=True)
            with swap:
                y = Twice.apply(Twice.apply(x * 2).exp()).sum()
            return torch.autograd.grad(y, x)

        swap = Swap(BIG, "swap-all", "memory=64MiB")
        for _ in range(3):
            self.same([gradient(swap)], [gradient(contextlib.nullcontext())])
        self.assertEqual(used(swap), 0)

    def test_a_directory_gives_back_what_it_took(self):
        plain = train(None)
        with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
            swap = Swap(BIG, "swap-all", f"dir:{folder}=256MiB")
            self.same(train(swap), plain)
            self.assertEqual(os.listdir(folder), [])
            self.assertGreater(swap.statistics()["bytes_out"], 1 << 20)

    def test_a_tier_that_is_full_spills_and_then_tensors_stay(self):
        plain = train(None)
        swap = Swap(BIG, "swap-all", "memory=1MiB")
        self.same(train(swap), plain)
        said = swap.statistics()
        self.assertGreater(said["refused"], 0)
        self.assertGreater(said["copies_out"], 0)

    def test_one_with_for_all_of_a_training(self):
        plain = train(None)
        with Swap(BIG, "swap-all", "memory=256MiB") as swap:
            model_gradients = train(None)
        self.same(model_gradients, plain)
        self.assertGreater(swap.statistics()["copies_in"], 20)
        self.assertGreaterEqual(swap.statistics()["steps"], 7)

    def test_a_storage_with_several_tensors_moves_once(self):
        swap = Swap(BIG, "swap-all", "memory=64MiB")
        base = torch.randn(64, 1024, requires_grad=True)
        with swap:
            made = base * 2
            halves = made[:32], made[32:]
            (halves[0].exp() * made[:32] * halves[1].exp() * made.view(-1)[:1024]).sum().backward()
        # `made`, two exponentials, two products.
        self.assertLessEqual(swap.statistics()["saves"], 6)

    def test_what_is_conjugated_or_negated_only_when_it_is_read(self):
        def gradients(swap):
            torch.manual_seed(4)
            parts = [torch.randn(256, 256, dtype=torch.complex64, requires_grad=True) for _ in range(2)]
            with swap:
                conjugate = (parts[0] * 2).conj()
                self.assertTrue(conjugate.is_conj() and conjugate.imag.is_neg())
                y = (conjugate * (parts[1] * 1)).abs().sum() + (conjugate.imag * (parts[1] * 3).real).sum()
            let_leave(swap)
            return torch.autograd.grad(y, parts)

        def let_leave(swap):  # on a busy machine copies take longer than the step
            for _ in range(2000):
                if swap is plain or swap.statistics()["copies_out"] > 0:
                    break
                time.sleep(0.005)
            swap._reap()

        swap, plain = Swap(BIG, "swap-all", "memory=64MiB"), Swap(BIG, "none")
        self.same([gradients(swap)], [gradients(plain)])
        self.assertGreater(swap.statistics()["copies_in"], 0)

    def test_a_graph_that_is_kept_can_be_gone_through_again(self):
        swap = Swap(BIG, "swap-all", "memory=64MiB")
        x = torch.randn(128, 512, requires_grad=True)
        with swap:
            y = (x.exp() * x.tanh()).sum()
        first = torch.autograd.grad(y, x, retain_graph=True)[0]
        second = torch.autograd.grad(y, x)[0]
        self.assertTrue(torch.equal(first, second))
        plain = torch.autograd.grad((x.exp() * x.tanh()).sum(), x)[0]
        self.assertTrue(torch.equal(first, plain))
        del y
        self.assertEqual(used(swap), 0)

    def test_gradients_of_gradients(self):
        def twice(x):
            g = torch.autograd.grad((x.exp() * x.tanh()).sum(), x, create_graph=True)[0]
            return torch.autograd.grad((g * g).sum(), x)[0]

        x = torch.randn(128, 512, requires_grad=True)
        with Swap(BIG, "swap-all", "memory=64MiB"):
            ours = twice(x)
        self.assertTrue(torch.equal(ours, twice(x)))

    def test_a_model_is_traced_as_it_is(self):
        def traced(swap, check):
            model = torch.nn.Sequential(
                torch.nn.Conv2d(3, 16, 3), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(16 * 14 * 14, 10)
            )
            with swap, warnings.catch_warnings():
                warnings.simplefilter("error", torch.jit.TracerWarning)
                return torch.jit.trace(model, data(24)[0], check_trace=check)

        swap = Swap(BIG, "swap-all", "memory=64MiB")
        model = traced(swap, False)
        kinds = [node.kind() for node in model.inlined_graph.nodes()]
        plain = traced(contextlib.nullcontext(), False)
        self.assertEqual(kinds, [node.kind() for node in plain.inlined_graph.nodes()])
        traced(swap, True)  # traces again, and compares
        before = swap.statistics()["saves"]
        with swap:
            model(data(24)[0]).sum().backward()
        self.assertGreater(swap.statistics()["saves"], before)

    def test_recomputing_by_the_program_itself(self):
        from torch.utils.checkpoint import checkpoint

        def gradients(swap, **options):
            model = net()
            model[7].p = 0.0
            x, y = data(16)
            x.requires_grad_()
            with swap:
                for _ in range(3):
                    model.zero_grad()
                    middle = checkpoint(model[:4], x, **options)
                    loss = torch.nn.functional.cross_entropy(model[4:](middle), y)
                    loss.backward()
            return [p.grad.clone() for p in model.parameters()]

        for reentrant in (True, False):
            plain = gradients(Swap(BIG, "none"), use_reentrant=reentrant)
            ours = gradients(Swap(BIG, "swap-all", "memory=64MiB"), use_reentrant=reentrant)
            self.same([ours], [plain])


if __name__ == "__main__":
    unittest.main()
