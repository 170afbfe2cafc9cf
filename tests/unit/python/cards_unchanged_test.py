#!/usr/bin/env python3
"""Describing a PyTorch module changes nothing of it."""
import random
import sys
import unittest

try:
    import torch
    from torch import nn
except ImportError:
    print("skipped: PyTorch is not installed (python3-torch)")
    sys.exit(77)

sys.path.insert(0, sys.argv.pop(1))
import tierpilot  # noqa: E402


class Unchanged(unittest.TestCase):
    def test_nothing_is_changed(self):
        model = nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3), nn.Dropout())
        before = {name: value.clone() for name, value in model.state_dict().items()}
        x = torch.randn(4, 3)
        torch.manual_seed(1)
        wanted = torch.rand(1)
        torch.manual_seed(1)
        card = tierpilot.describe(model, x)
        self.assertTrue(torch.equal(torch.rand(1), wanted))
        for name, value in model.state_dict().items():
            self.assertTrue(torch.equal(value, before[name]), name)
        self.assertTrue(all(parameter.grad is None for parameter in model.parameters()))
        self.assertEqual(card["operators"]["Dropout"]["count"], 1)
        self.assertFalse(any(module._forward_hooks for module in model.modules()))
        self.assertEqual(tierpilot.describe(model, torch.randn(4, 3)), card)

    def test_random_numbers_of_python_are_afterwards_what_they_were(self):
        class Draws(nn.Linear):
            def forward(self, x):
                return super().forward(x) * random.random()

        random.seed(1)
        wanted = random.random()
        random.seed(1)
        tierpilot.describe(Draws(3, 3), torch.randn(4, 3))
        self.assertEqual(random.random(), wanted)

    def test_nothing_is_changed_by_a_pass_that_fails(self):
        class Broken(nn.Module):
            def __init__(self):
                super().__init__()
                self.norm, self.cell = nn.BatchNorm1d(3), nn.LSTM(3, 3)

            def forward(self, x):
                self.norm(x)
                self.cell(x[:, :2])

        model = Broken()
        before = {name: value.clone() for name, value in model.state_dict().items()}
        with self.assertRaises(RuntimeError):
            tierpilot.describe(model, torch.randn(4, 3))
        for name, value in model.state_dict().items():
            self.assertTrue(torch.equal(value, before[name]), name)
        self.assertFalse(any("forward" in vars(module) for module in model.modules()))

    def test_a_buffer_that_the_pass_replaces_is_the_old_one_again(self):
        class Average(nn.Module):
            def __init__(self):
                super().__init__()
                self.register_buffer("mean", torch.zeros(3))
                self.register_buffer("last", None)

            def forward(self, x):
                self.mean, self.last = 0.9 * self.mean + x.mean(0), x
                return x - self.mean

        model = Average()
        mean = model.mean
        tierpilot.describe(model, torch.ones(4, 3))
        self.assertIs(model.mean, mean)
        self.assertTrue(torch.equal(mean, torch.zeros(3)))
        self.assertIsNone(model.last)

    def test_buffers_whose_elements_share_memory_are_what_they_were(self):
        class Places(nn.Module):
            def __init__(self, fails):
                super().__init__()
                self.register_buffer("position", torch.arange(4.0).expand(3, 4))
                self.register_buffer("column", torch.arange(3.0).unsqueeze(1).expand(3, 4))
                self.register_buffer("windows", torch.arange(6.0).unfold(0, 4, 1))
                self.norm, self.fails = nn.BatchNorm1d(4), fails

            def forward(self, x):
                self.position[0] += 1
                self.column[:, 2] *= 5
                self.windows[1].fill_(float("nan"))
                x = self.norm(x + self.position)
                if self.fails:
                    raise KeyError("x")
                return x

        for fails in (False, True):
            model = Places(fails)
            before = {name: value.clone() for name, value in model.state_dict().items()}
            if fails:
                with self.assertRaises(KeyError):
                    tierpilot.describe(model, torch.randn(3, 4) + 5)
            else:
                card = tierpilot.describe(model, torch.randn(3, 4) + 5)
                self.assertEqual(card["operators"]["BatchNorm"]["count"], 1)
            for name, value in model.state_dict().items():
                self.assertTrue(torch.equal(value, before[name]), name)
            self.assertEqual(model.position.stride(), (0, 1))

    def test_a_buffer_that_stays_as_it_is_is_not_written(self):
        class Keeps(nn.Module):
            def __init__(self):
                super().__init__()
                self.register_buffer("scale", torch.tensor([2.0, float("nan"), -0.0]))

            def forward(self, x):
                return x * self.scale

        model = Keeps()
        x = torch.ones(3, requires_grad=True)
        made = model(x).sum()
        tierpilot.describe(model, torch.ones(3))
        made.backward()
        self.assertEqual(x.grad[0], 2)

    def test_buffers_are_what_they_were_where_one_cannot_be(self):
        class Sealed(torch.Tensor):
            @classmethod
            def __torch_function__(cls, function, types, args=(), kwargs=None):
                if function is torch.Tensor.copy_:
                    raise RuntimeError("sealed")
                return super().__torch_function__(function, types, args, kwargs or {})

        class Counts(nn.Module):
            def __init__(self, sealed):
                super().__init__()
                self.register_buffer("sealed", sealed)
                self.norm = nn.BatchNorm1d(4)

            def forward(self, x):
                with torch.inference_mode():
                    self.sealed.add_(1)
                return self.norm(x)

        def described(sealed):
            model = Counts(sealed)
            try:
                tierpilot.describe(model, torch.randn(3, 4) + 5)
            finally:
                self.assertTrue(torch.equal(model.norm.running_mean, torch.zeros(4)))
                self.assertEqual(model.norm.num_batches_tracked, 0)

        with self.assertRaisesRegex(RuntimeError, "sealed"):
            described(torch.zeros(2).as_subclass(Sealed))
        with torch.inference_mode():
            constant = torch.zeros(2)
        described(constant)
        self.assertTrue(torch.equal(constant, torch.zeros(2)))

    def test_buffers_of_any_kind_are_what_they_were(self):
        class Norm(nn.Module):
            def __init__(self, buffer):
                super().__init__()
                self.register_buffer("other", buffer)
                self.norm = nn.BatchNorm1d(4)

            def forward(self, x):
                if not self.other.is_quantized:
                    self.other.zero_()
                return self.norm(x)

        def plain(tensor):
            return tensor.dequantize() if tensor.is_quantized else tensor.to_dense()

        ones = torch.ones(3, 3)
        for buffer in (
            ones, ones[0, 0], ones[:0], ones.t()[1:], ones.bool(), ones.bfloat16(),
            ones.to(torch.complex64).conj(), ones.to_sparse(), ones.to_mkldnn(),
            torch.quantize_per_tensor(ones, 0.5, 0, torch.qint8),
        ):
            model, before = Norm(buffer), buffer.clone()
            tierpilot.describe(model, torch.randn(5, 4) + 5)
            self.assertEqual(model.norm.num_batches_tracked, 0)
            self.assertTrue(torch.equal(plain(model.other), plain(before)), buffer)

    def test_a_buffer_that_the_pass_gives_other_memory_has_its_own_again(self):
        class Cache(nn.Module):
            def __init__(self):
                super().__init__()
                self.register_buffer("seen", torch.zeros(1, 4))
                self.register_buffer("last", torch.zeros(3, 4))

            def forward(self, x):
                self.seen.data = torch.cat([self.seen, x])
                self.last.data = x
                return self.seen.sum(0)

        for device in ("cpu", "meta"):
            model, x = Cache().to(device), torch.ones(3, 4, device=device)
            memory = model.last.data_ptr()
            tierpilot.describe(model, x)
            self.assertEqual(model.seen.shape, (1, 4))
            if device == "cpu":
                self.assertEqual(model.last.data_ptr(), memory)
                for buffer in model.buffers():
                    self.assertTrue(torch.equal(buffer, torch.zeros_like(buffer)))
                self.assertTrue(torch.equal(x, torch.ones(3, 4)), "nothing is written to the input")


if __name__ == "__main__":
    unittest.main()
