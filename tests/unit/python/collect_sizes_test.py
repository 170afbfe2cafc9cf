#!/usr/bin/env python3
"""Trainings of a GPU's size: the same models, larger batches of the same examples."""
import sys
import unittest

try:
    import torch
except ImportError:
    print("skipped: PyTorch is not installed (python3-torch)")
    sys.exit(77)

sys.path.insert(0, sys.argv.pop(1))
sys.dont_write_bytecode = True
from tierpilot.cards import describe  # noqa: E402
from tierpilot.collect.architectures import ARCHITECTURES  # noqa: E402
from tierpilot.collect.gpus.kernels import covered_ns  # noqa: E402
from tierpilot.collect.gpus.sizes import Sized  # noqa: E402
from tierpilot.collect.measure import build, draw  # noqa: E402

GRAPHS = ("graph_convolution", "propagation")  # one graph is the whole batch


def loss_of(task):
    task.model.eval()
    torch.manual_seed(1)
    with torch.no_grad():
        return task.loss(task.model(*task.inputs), task.wanted).item()


class Sizes(unittest.TestCase):
    def test_more_of_the_same_examples_have_the_same_loss(self):
        for name in ARCHITECTURES:
            task, _ = build(name, 7, draw(name, 7)[0])
            self.assertEqual(task.grows, name not in GRAPHS, name)
            if not task.grows or name == "variational":  # its noise is another one
                continue
            before, batch = loss_of(task), task.batch
            task.grow(3)
            self.assertEqual(task.batch, 3 * batch, name)
            self.assertAlmostEqual(loss_of(task), before, delta=1e-4 * max(1, abs(before)), msg=name)

    def test_cards_are_those_of_the_training(self):
        for name in ARCHITECTURES:
            sized = next(sized for seed in range(20) if (sized := Sized(name, seed)).times < 20)
            task = sized.build()
            card = {**describe(task.model, task.inputs, task.batch), "job": sized.card["job"]}
            self.assertEqual(sized.card, card, name)

    def test_small_and_large_ones_are_drawn_and_none_beyond_its_limits(self):
        drawn = [Sized(name, seed) for seed in range(5) for name in ("mlp", "lenet", "gru", "text_cnn")]
        self.assertTrue(any(sized.times == 1 for sized in drawn))
        self.assertTrue(any(sized.times > 100 for sized in drawn))
        for sized in drawn:
            small = draw(*sized._what)[1]
            self.assertEqual(sized.card["batch"], sized.times * small["batch"])
            self.assertEqual(sized.card["parameters"], small["parameters"])
            self.assertLess(sized.card["flops"], 5e11)
            self.assertLess(sized.card["activation_bytes"], 3 << 30)
            self.assertEqual(sized.build().batch, sized.card["batch"])

    def test_the_same_is_drawn_again(self):
        one, again = Sized("resnet", 3), Sized("resnet", 3)
        self.assertEqual((one.times, one.card, one.reads), (again.times, again.card, again.reads))


class Covered(unittest.TestCase):
    def test_what_runs_at_once_counts_once(self):
        self.assertEqual(covered_ns([]), 0)
        self.assertEqual(covered_ns([(10, 20), (30, 45)]), 25)
        self.assertEqual(covered_ns([(30, 45), (10, 40), (12, 15)]), 35)


if __name__ == "__main__":
    unittest.main()
