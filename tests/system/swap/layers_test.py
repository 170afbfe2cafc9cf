#!/usr/bin/env python3
"""Sequences that several models hold, that one model holds twice, and that are changed: each layer runs once."""
import contextlib
import threading
import unittest

from scene import BIG, Swap

import torch  # after scene, which skips without it
from torch import nn


class Residual(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(8, 8)

    def forward(self, x):
        return x + self.layer(x)


class Coder(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = layers(2)
        self.head = nn.Linear(8, 1)

    def forward(self, x):
        return self.head(self.encoder(x))


class Wrapped(nn.Module):
    def __init__(self, module):
        super().__init__()
        self.module = module

    def forward(self, x):
        return self.module(x)


def layers(count):
    return nn.Sequential(*[layer for _ in range(count) for layer in (nn.Linear(8, 8), nn.Tanh())])


class Layers(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(3)
        self.x = torch.randn(4, 8)

    def is_as_plain(self, *models):
        """Called one after another, twice each."""
        plain = [model(self.x) for model in models]
        for policy in ("none", "checkpoint"):
            swap = Swap(BIG, policy, recompute=True)
            for _ in range(2):
                for model, expected in zip(models, plain):
                    with swap:
                        made = model(self.x)
                    self.assertTrue(torch.equal(made, expected), (policy, type(model).__name__))

    def test_a_part_that_is_called_by_itself(self):
        coder = Coder()
        self.is_as_plain(coder.encoder, coder, coder.encoder)
        self.is_as_plain(coder, coder.encoder, coder)

    def test_a_wrapper_that_comes_after_its_model(self):
        net = layers(2)
        self.is_as_plain(net, Wrapped(net), Wrapped(Wrapped(net)))

    def test_a_block_in_two_places(self):
        block = nn.Sequential(Residual(), nn.Tanh(), nn.Softmax(1))
        self.is_as_plain(nn.Sequential(nn.Linear(8, 8), block, nn.Sigmoid(), block))
        run = layers(1)
        self.is_as_plain(nn.Sequential(nn.Sequential(layers(1), nn.Tanh(), nn.ReLU(), run), run, nn.Sigmoid()))

    def test_layers_that_are_taken_out_and_put_in(self):
        for change in (lambda net: net.__delitem__(slice(6, None)), lambda net: net.__delitem__(slice(1, None)),
                       lambda net: net.append(nn.Sigmoid()), lambda net: net.insert(0, nn.ReLU()),
                       lambda net: net.__setitem__(2, Residual())):
            net = layers(4)
            swap = Swap(BIG, "checkpoint", recompute=True)
            with swap:
                net(self.x)
            change(net)
            expected = net(self.x)
            for _ in range(2):
                with swap:
                    made = net(self.x)
                self.assertTrue(torch.equal(made, expected))

    def test_threads_that_meet_a_model_at_once(self):
        for _ in range(50):
            net, swap, wrong = layers(8), Swap(BIG, "none", recompute=True), []
            expected, begin = net(self.x), threading.Barrier(3)

            def run():
                begin.wait()
                with swap:
                    if not torch.equal(net(self.x), expected):
                        wrong.append(1)

            threads = [threading.Thread(target=run) for _ in range(3)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            self.assertEqual(wrong, [])

    def test_what_autocast_keeps_of_leaves_only(self):
        class Gate(nn.Module):
            def __init__(self):
                super().__init__()
                self.layer = nn.Linear(256, 256)

            def forward(self, x):
                with torch.no_grad():
                    gate = torch.sigmoid(self.layer(x))
                return self.layer(x) * gate

        def gradient(context):
            torch.manual_seed(0)
            first, gates = nn.BatchNorm1d(256), nn.Sequential(nn.Sequential(Gate(), nn.Tanh()), nn.Linear(256, 256))
            for _ in range(3):
                with context, torch.autocast("cpu", dtype=torch.bfloat16):
                    loss = gates(first(torch.randn(256, 256))).float().square().mean()
                loss.backward()
            return first.weight.grad

        plain = gradient(contextlib.nullcontext())
        self.assertTrue(torch.equal(gradient(Swap(BIG, "checkpoint", recompute=True)), plain))

    def test_a_parameter_that_gets_other_data(self):
        def gradient(context):
            torch.manual_seed(0)
            x, weights = torch.randn(64, 256, requires_grad=True), torch.randn(256, 256, requires_grad=True)
            with context:
                loss = (x @ weights).sum()
            weights.data = torch.ones(256, 256)
            loss.backward()
            return x.grad

        plain = gradient(contextlib.nullcontext())
        for policy in ("none", "swap-all"):
            self.assertTrue(torch.equal(gradient(Swap(BIG, policy)), plain), policy)


if __name__ == "__main__":
    unittest.main()
