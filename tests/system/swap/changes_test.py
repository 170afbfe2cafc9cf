#!/usr/bin/env python3
"""What a program does meanwhile: changes in place, exceptions, other hooks, threads, forks."""
import os
import threading
import time
import unittest
import warnings

from scene import BIG, Case, Swap, data, let_leave, net, train, used

import torch  # after scene, which skips without it
from torch._vmap_internals import vmap


class Spoiling(torch.autograd.Function):
    """Changes in its backward pass what it saved."""

    @staticmethod
    def forward(context, x):
        context.save_for_backward(x)
        return x.clone()

    @staticmethod
    def backward(context, gradient):
        context.saved_tensors[0].add_(1)
        return gradient


class Changes(Case):
    def test_what_is_changed_in_place_is_refused_as_autograd_does(self):
        for policy in ("none", "swap-all"):
            with self.subTest(policy=policy):
                x = torch.randn(256, 512, requires_grad=True)
                swap = Swap(BIG, policy, "memory=64MiB")
                with swap:
                    made = x * 1
                    y = made.exp()
                    z = (made * y).sum()
                if policy == "swap-all":
                    let_leave(swap)
                expected = torch.autograd.grad((x * x.exp()).sum(), x)[0]
                self.assertTrue(torch.allclose(torch.autograd.grad(z, x, retain_graph=True)[0], expected))
                with torch.no_grad():
                    y.add_(1)
                for _ in range(2):
                    with self.assertRaisesRegex(RuntimeError, "inplace operation"):
                        torch.autograd.grad(z, x, retain_graph=True)

    def test_what_is_changed_after_another_thread_let_it_leave(self):
        swap = Swap(BIG, "swap-all", "memory=64MiB")
        x = torch.randn(256, 512, requires_grad=True)
        with swap:
            y = x.exp()
            z = y.sum()
        other = threading.Thread(target=let_leave, args=(swap,))
        other.start()
        other.join()
        y.add_(1)
        with self.assertRaisesRegex(RuntimeError, "inplace operation"):
            z.backward()

    def test_a_backward_pass_that_changes_what_another_waits_for(self):
        for policy in ("none", "swap-all"):
            for view in (False, True):
                with self.subTest(policy=policy, view=view):
                    swap = Swap(BIG, policy, "memory=64MiB")
                    p, w = (torch.randn(256, 512, requires_grad=True) for _ in range(2))
                    with swap:
                        x = p * 1
                        loss = (x * w).sum() + Spoiling.apply(x.view(-1) if view else x).sum()
                    del x
                    if policy == "swap-all":
                        let_leave(swap)
                    with self.assertRaisesRegex(RuntimeError, "inplace operation"):
                        loss.backward()
                    self.assertEqual(swap.statistics()["copies_in"] > 0, policy == "swap-all")

    def test_one_tensor_in_a_graph_that_ended_while_it_left_and_in_another(self):
        swap = Swap(BIG, "swap-all", "memory=256MiB")
        x, large = torch.randn(256, 1024), torch.full((4096, 256), 7.0)
        weights = [torch.randn(size, 8, requires_grad=True) for size in (1024, 256)]
        expected = torch.autograd.grad((x @ weights[0]).tanh().sum(), weights[0])[0]
        for _ in range(30):
            with swap:
                (x @ weights[0]).tanh()  # ends here, its copies under way
                y = (x @ weights[0]).tanh()
                time.sleep(0.002)
                other = large @ weights[1]  # may have the number of what ended
            self.assertTrue(torch.equal(torch.autograd.grad(y.sum(), weights[0])[0], expected))
            del y, other

    def test_an_exception_in_forward_leaves_nothing_behind(self):
        swap = Swap(BIG, "swap-all", "memory=64MiB")
        plain = train(None, (24, 24))
        for _ in range(3):
            model = net()
            with self.assertRaises(ValueError), swap:
                middle = model[:4](data(24)[0])
                raise ValueError("in the middle of " + str(middle.shape))
            del middle, model
        self.same(train(swap, (24, 24)), plain)
        self.assertEqual(used(swap), 0)

    def test_hooks_of_others_within_and_around(self):
        plain = train(None, (24,) * 3)
        swap = Swap(BIG, "swap-all", "memory=64MiB")
        with torch.autograd.graph.save_on_cpu():
            self.same(train(swap, (24,) * 3), plain)
        taken = swap.statistics()["saves"]
        self.assertGreater(taken, 0)
        x = torch.randn(256, 512, requires_grad=True)
        with swap, torch.autograd.graph.save_on_cpu():
            x.exp().sum().backward()
        self.assertEqual(swap.statistics()["saves"], taken)

    def test_a_thread_without_it_maps_over_a_convolution(self):
        convolution, x, made = torch.nn.Conv2d(3, 4, 3), torch.randn(5, 2, 3, 8, 8), []

        def run():
            with torch.no_grad(), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                made.append(vmap(convolution)(x))

        with Swap(BIG, "vdnn", "memory=64MiB"):
            thread = threading.Thread(target=run)
            thread.start()
            thread.join()
        self.assertEqual(made[0].shape, (5, 2, 4, 6, 6))

    def test_backward_in_another_thread_and_several_at_once(self):
        swap = Swap(BIG, "swap-all", "memory=64MiB")
        inputs = [torch.randn(256, 512, requires_grad=True) for _ in range(6)]
        results = [None] * len(inputs)

        def work(at):
            with swap:
                y = inputs[at].exp().tanh().sum()
            results[at] = torch.autograd.grad(y, inputs[at])[0]

        threads = [threading.Thread(target=work, args=(at,)) for at in range(len(inputs))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for x, got in zip(inputs, results):
            self.assertTrue(torch.equal(got, torch.autograd.grad(x.exp().tanh().sum(), x)[0]))

        with swap:
            y = inputs[0].exp().tanh().sum()
        elsewhere = threading.Thread(target=y.backward)
        elsewhere.start()
        elsewhere.join()
        self.assertTrue(torch.equal(inputs[0].grad, results[0]))

    def test_a_forked_child_trains_without_and_cannot_have_what_is_away(self):
        swap = Swap(BIG, "swap-all", "memory=64MiB")
        x = torch.randn(256, 512, requires_grad=True)
        with swap:
            y = x.exp().tanh().sum()
            child = os.fork()
            if child == 0:
                code = 1
                try:
                    z = torch.randn(256, 512, requires_grad=True)
                    z.exp().sum().backward()
                    if torch.equal(z.grad, z.exp()):
                        try:
                            y.backward()
                        except RuntimeError as error:
                            code = 0 if "forked" in str(error) else 2
                finally:
                    os._exit(code)
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 0)
        y.backward()
        self.assertTrue(torch.equal(x.grad, torch.autograd.grad(x.exp().tanh().sum(), x)[0]))


if __name__ == "__main__":
    unittest.main()
