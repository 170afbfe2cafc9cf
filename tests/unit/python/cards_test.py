#!/usr/bin/env python3
"""Model cards of PyTorch modules."""
import collections
import json
import pathlib
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
from tierpilot.cards import kinds  # noqa: E402

SCHEMA = json.loads(pathlib.Path(sys.argv.pop(1)).read_text())


def perceptron():
    return nn.Sequential(nn.Linear(8, 4), nn.ReLU(), nn.Linear(4, 2))


class Cards(unittest.TestCase):
    def test_counts_what_a_perceptron_computes(self):
        card = tierpilot.describe(perceptron(), torch.randn(16, 8))
        self.assertEqual(card["batch"], 16)
        self.assertEqual(card["input_elements"], 128)
        self.assertEqual(card["parameters"], 8 * 4 + 4 + 4 * 2 + 2)
        self.assertEqual(card["parameter_bytes"], 4 * card["parameters"])
        self.assertEqual(card["parameter_tensors"], 4)
        self.assertEqual(card["depth"], 3)
        self.assertEqual(card["launches"], 3)
        products = card["operators"]["MatMul"]
        self.assertEqual(products["count"], 2)
        self.assertEqual(products["largest_input"], 128)
        self.assertEqual(products["input_sum"], 128 + 64)
        self.assertEqual(products["output_sum"], 64 + 32)
        self.assertEqual(products["parameter_sum"], card["parameters"])
        self.assertEqual(products["flops"], 16 * 2 * (8 * 4 + 4 * 2))
        self.assertEqual(card["operators"]["ReLU"]["flops"], 64)
        self.assertEqual(card["activation_bytes"], 4 * (64 + 64 + 32))
        self.assertFalse(card["uncertain"])
        self.assertNotIn("job", card)

    def test_kinds_are_those_of_the_documented_table(self):
        table = pathlib.Path(__file__).parents[3] / "docs/reference/operator-kinds.md"
        rows = [line.split("|") for line in table.read_text().splitlines() if line.startswith("| ")]
        told = {name: cells[1].strip() for cells in rows[1:] for name in cells[3].split()}
        self.assertEqual(told, kinds._KINDS)

    def test_convolutions(self):
        plain = tierpilot.describe(nn.Conv2d(3, 8, 3, padding=1), torch.randn(2, 3, 10, 10))
        self.assertEqual(plain["operators"]["Conv2D"]["flops"], 2 * 2 * 8 * 100 * 3 * 9)
        self.assertEqual(plain["operators"]["BiasAdd"]["count"], 1)
        apart = tierpilot.describe(nn.Conv2d(8, 8, 3, groups=8, bias=False), torch.randn(1, 8, 5, 5))
        self.assertEqual(apart["operators"]["DepthwiseConv2D"]["flops"], 2 * 8 * 9 * 9)
        back = tierpilot.describe(nn.ConvTranspose2d(4, 6, 2, stride=2), torch.randn(1, 4, 5, 5))
        self.assertEqual(back["operators"]["Conv2DTranspose"]["flops"], 2 * 100 * 6 * 4)
        pool = tierpilot.describe(nn.MaxPool2d(2), torch.randn(1, 1, 8, 8))
        self.assertEqual(pool["operators"]["MaxPool"]["output_sum"], 16)
        self.assertEqual(pool["operators"]["MaxPool"]["flops"], 64)

    def test_products_of_batches_that_are_summed_and_of_two_vectors(self):
        class Calls(nn.Module):
            def __init__(self, function):
                super().__init__()
                self.function = function

            def forward(self, *given):
                return self.function(*given)

        def operations(function, *sizes):
            card = tierpilot.describe(Calls(function), tuple(torch.randn(*size) for size in sizes))
            return card["operators"]["MatMul"]["flops"]

        matrices = (8, 4, 5), (8, 5, 6)
        self.assertEqual(operations(torch.addbmm, (4, 6), *matrices), 2 * 8 * 4 * 5 * 6)
        self.assertEqual(operations(torch.baddbmm, (8, 4, 6), *matrices), 2 * 8 * 4 * 5 * 6)
        self.assertEqual(operations(torch.addr, (4, 5), (4,), (5,)), 2 * 4 * 5)
        self.assertEqual(operations(torch.addmv, (4,), (4, 5), (5,)), 2 * 4 * 5)

    def test_of_a_sparse_matrix_its_values_count(self):
        class Keeps(nn.Module):
            def __init__(self, weight):
                super().__init__()
                self.register_buffer("weight", weight)

            def forward(self, x):
                return self.weight @ x

        dense = torch.zeros(40, 50)
        dense[:20, 3] = 1
        for weight in (dense.to_sparse(), dense.to_sparse_csr()):
            card = tierpilot.describe(Keeps(weight), torch.randn(50, 6))
            self.assertEqual(card["operators"]["MatMul"]["flops"], 2 * 20 * 6, weight.layout)
            self.assertEqual(card["operators"]["MatMul"]["parameter_sum"], 20)
            self.assertEqual(card["parameters"], 20)
            self.assertEqual(card["parameter_bytes"], 80)
            self.assertFalse(card["uncertain"])

    def test_a_pool_to_a_given_size_takes_its_whole_input(self):
        for dimensions, pools in (
            (1, (nn.AdaptiveAvgPool1d, nn.AdaptiveMaxPool1d)),
            (2, (nn.AdaptiveAvgPool2d, nn.AdaptiveMaxPool2d)),
            (3, (nn.AdaptiveAvgPool3d, nn.AdaptiveMaxPool3d)),
        ):
            for pool in pools:
                for size in (1, 2, 4):
                    x = torch.randn(2, 3, *[8] * dimensions)
                    self.assertEqual(tierpilot.describe(pool(size), x)["flops"], x.numel(), pool)
        larger = tierpilot.describe(nn.AdaptiveAvgPool2d(7), torch.randn(1, 1, 2, 2))
        self.assertEqual(larger["flops"], 49, "each output takes one at least")

    def test_what_only_profilers_see_is_no_operator(self):
        class Named(nn.Module):
            def __init__(self):
                super().__init__()
                self.linear, self.cell = nn.Linear(3, 3), nn.LSTMCell(3, 3)
                forward = self.cell.forward
                self.cell.forward = lambda x: self.named(forward, x)

            def named(self, part, x):
                with torch.autograd.profiler.record_function("part"):
                    return part(x)

            def forward(self, x):
                return self.cell(self.named(self.linear, x))

        class Plain(Named):
            def named(self, part, x):
                return part(x)

        def described(model, *sizes):
            card = tierpilot.describe(model, torch.randn(*sizes))
            # PyTorch makes an empty tensor for what it begins, in versions before 2.
            card["operators"].pop("Shape", None)
            names = ("operators", "parameters", "flops", "depth", "unknown_operators", "uncertain")
            return {name: card[name] for name in names}

        self.assertEqual(described(Named(), 4, 3), described(Plain(), 4, 3))
        parallel = nn.DataParallel(perceptron())
        self.assertEqual(described(parallel, 16, 8), described(perceptron(), 16, 8))
        self.assertFalse(described(Named(), 4, 3)["uncertain"])

    def test_a_recurrent_layer_is_one_operator_of_many_steps(self):
        card = tierpilot.describe(nn.LSTM(5, 7, batch_first=True), torch.randn(3, 11, 5))
        self.assertEqual(list(card["operators"]), ["Recurrent"])
        use = card["operators"]["Recurrent"]
        self.assertEqual(use["count"], 1)
        self.assertEqual(use["flops"], 2 * 3 * 11 * 4 * 7 * (5 + 7))
        self.assertGreater(card["launches"], 11)
        twice = tierpilot.describe(nn.LSTM(5, 7, batch_first=True), torch.randn(3, 22, 5))
        self.assertGreater(twice["launches"], 1.8 * card["launches"])

    def test_a_recurrent_layer_that_runs_as_one_operator_counts_the_same(self):
        from tierpilot.cards.tracing import _recurrent

        for layer in (nn.LSTM(5, 7, batch_first=True), nn.GRU(5, 7, 2, bidirectional=True)):
            x = torch.randn(3, 11, 5)
            use = tierpilot.describe(layer, x)["operators"]["Recurrent"]
            seen, launches = _recurrent(layer, x)
            self.assertEqual(seen, use["flops"])
            self.assertGreater(launches, 11 * 3)

    def test_attention_is_products_and_softmax(self):
        model = nn.MultiheadAttention(8, 2, batch_first=True)
        x = torch.randn(2, 6, 8)
        card = tierpilot.describe(model, (x, x, x))
        self.assertIn("Softmax", card["operators"])
        products = 3 * 2 * 12 * 8 * 8 + 2 * 12 * 8 * 8 + 2 * 2 * 2 * 6 * 6 * 8
        self.assertEqual(card["operators"]["MatMul"]["flops"], products)

    def test_lookups_and_named_inputs(self):
        class Lookup(nn.Module):
            def __init__(self):
                super().__init__()
                self.rows = nn.EmbeddingBag(10, 4, mode="sum")

            def forward(self, tokens, scale):
                return self.rows(tokens) * scale

        given = {"tokens": torch.zeros(3, 5).long(), "scale": torch.ones(1)}
        card = tierpilot.describe(Lookup(), given)
        self.assertEqual(card["batch"], 3)
        self.assertEqual(card["operators"]["Gather"]["output_sum"], 12)
        self.assertEqual(card["operators"]["Mul"]["count"], 1)

    def test_what_nobody_knows_is_counted_and_named(self):
        class Odd(nn.Module):
            def forward(self, x):
                return torch.lgamma(torch.lgamma(x))

        card = tierpilot.describe(Odd(), torch.rand(4))
        self.assertEqual(card["unknown_operators"], {"lgamma": 2})
        self.assertTrue(card["uncertain"])
        self.assertEqual(card["operators"]["Unknown"]["count"], 2)

    def test_a_pass_that_wants_gradients_says_so(self):
        class Slope(nn.Module):
            def forward(self, x):
                x = x.detach().requires_grad_()
                return torch.autograd.grad((x * x).sum(), x)[0]

        class Apart(Slope):
            def forward(self, x):
                with torch.enable_grad():
                    return super().forward(x)

        with self.assertRaisesRegex(ValueError, "torch.enable_grad"):
            tierpilot.describe(Slope(), torch.ones(4, 3))
        self.assertEqual(tierpilot.describe(Apart(), torch.ones(4, 3))["operators"]["Reduce"]["count"], 1)

    def test_what_follows_a_layer_that_fails_is_counted(self):
        class Tries(nn.Module):
            def __init__(self):
                super().__init__()
                self.cell, self.linear = nn.LSTM(3, 3), nn.Linear(8, 8)

            def forward(self, x):
                try:
                    self.cell(x)
                except RuntimeError:
                    pass
                return self.linear(x)

        card = tierpilot.describe(Tries(), torch.randn(4, 8))
        self.assertEqual(card["operators"]["MatMul"]["flops"], 2 * 4 * 8 * 8)

    def test_layers_that_could_run_as_one_operator_count_alike_in_both_modes(self):
        class Attends(nn.Module):
            def __init__(self):
                super().__init__()
                self.attention = nn.MultiheadAttention(16, 2, batch_first=True)

            def forward(self, x):
                return self.attention(x, x, x, need_weights=False)[0]

        layer = nn.TransformerEncoderLayer(16, 2, 32, dropout=0, batch_first=True)
        for model in (Attends(), layer, nn.TransformerEncoder(layer, 2)):
            cards = {}
            for training in (True, False):
                model.train(training)
                cards[training] = tierpilot.describe(model, torch.randn(3, 5, 16))
                self.assertEqual(model.training, training)
            self.assertEqual(cards[False], cards[True])
            self.assertFalse(cards[False]["uncertain"])
            self.assertTrue(all(weight.requires_grad and weight.grad is None for weight in model.parameters()))
        self.assertFalse(torch.is_autocast_enabled())
        self.assertTrue(torch.is_grad_enabled())

    def test_padding_is_nothing_unknown_in_eval_mode(self):
        layer = nn.TransformerEncoderLayer(16, 2, 32, dropout=0, batch_first=True)
        model = nn.TransformerEncoder(layer, 2)
        given = {"src": torch.randn(3, 5, 16), "src_key_padding_mask": torch.arange(15).view(3, 5) == 14}
        trained = tierpilot.describe(model.train(), given)
        card = tierpilot.describe(model.eval(), given)
        self.assertEqual(card["unknown_operators"], {})
        self.assertEqual(card["operators"]["MatMul"], trained["operators"]["MatMul"])

    def test_inputs_within_others_are_inputs(self):
        class Adds(nn.Module):
            def forward(self, first, second=None):
                return first[0]["x"] + first[1]

        card = tierpilot.describe(Adds(), ([{"x": torch.ones(4, 8)}, torch.ones(4, 8)],))
        self.assertEqual(card["batch"], 4)
        self.assertEqual(card["input_elements"], 64)

    def test_inputs_of_a_mapping_that_is_no_dict_count(self):
        class Doubles(nn.Module):
            def forward(self, tokens):
                return 2 * (tokens if torch.is_tensor(tokens) else tokens["x"])

        given = collections.UserDict({"tokens": torch.ones(4, 8)})
        self.assertEqual(tierpilot.describe(Doubles(), given)["input_elements"], 32)
        within = collections.UserDict({"x": torch.ones(4, 8)})
        self.assertEqual(tierpilot.describe(Doubles(), (within,))["input_elements"], 32)

    def test_what_is_no_module_and_what_is_not_yet_one_says_so(self):
        with self.assertRaisesRegex(TypeError, "torch.nn.Module is needed, not a function"):
            tierpilot.describe(lambda x: x, torch.ones(1))
        with self.assertRaisesRegex(ValueError, "run it once before"):
            tierpilot.describe(nn.LazyLinear(3), torch.ones(2, 3))
        with self.assertRaisesRegex(ValueError, "run it once before"):
            tierpilot.describe(nn.LazyBatchNorm1d(affine=False), torch.ones(2, 3))

    def test_an_optimizer_is_told_by_its_name(self):
        weights = list(perceptron().parameters())
        for said, name in (
            ("Adam", "Adam"), (torch.optim.AdamW, "AdamW"), (torch.optim.RMSprop(weights), "RMSprop"),
            (torch.optim.SGD(weights, lr=1), "SGD"), (torch.optim.SGD(weights, lr=1, momentum=0.9), "SGD+momentum"),
        ):
            card = tierpilot.describe(perceptron(), torch.randn(1, 8), job={"optimizer": said})
            self.assertEqual(card["job"]["optimizer"], name)
        for wrong in ("", "a b", "x" * 65, "\x1b[31m", 5, None):
            with self.assertRaisesRegex(ValueError, "say its class's name"):
                tierpilot.describe(perceptron(), torch.randn(1, 8), job={"optimizer": wrong})

    def test_iterations_stand_among_what_is_known_of_the_job(self):
        card = tierpilot.describe(perceptron(), torch.randn(1, 8), job={"iterations": 7})
        self.assertEqual(card["job"], {"iterations": 7})
        with self.assertRaisesRegex(ValueError, "iterations: 8, but job has 7"):
            tierpilot.describe(perceptron(), torch.randn(1, 8), iterations=8, job={"iterations": 7})

    def test_what_a_job_is_told_to_be(self):
        job = {"optimizer": "Adam", "threads": 2, "samples_per_s": 100, "loads_ahead": True}
        card = tierpilot.describe(perceptron(), torch.randn(1, 8), batch=4, iterations=9, job=job)
        self.assertEqual(card["batch"], 4)
        self.assertEqual(card["job"], {"iterations": 9, **job})
        for wrong in ({"colour": 1}, {"threads": 0}, {"samples_per_s": 0}, {"load_s": -1},
                      {"threads": 1e7}, {"load_s": 1e9}, {"iterations": 1e18}):
            with self.assertRaises(ValueError):
                tierpilot.describe(perceptron(), torch.randn(1, 8), job=wrong)
        with self.assertRaises(ValueError):
            tierpilot.describe(perceptron(), torch.randn(1, 8), iterations=0)
        with self.assertRaises(ValueError):
            tierpilot.describe(perceptron(), ())

    def test_figures_that_no_card_may_have_are_refused(self):
        model = nn.Linear(1_000_000, 100_000, bias=False, device="meta")
        with self.assertRaisesRegex(ValueError, r"module: .*'flops'.* 2e\+18.* 1e\+18"):
            tierpilot.describe(model, torch.empty(10_000_000, 1_000_000, device="meta"))
        largest = tierpilot.describe(model, torch.empty(5_000_000, 1_000_000, device="meta"))
        self.assertEqual(largest["flops"], 10**18)
        wide = nn.Linear(1_000_000_000, 1_000_000_000, bias=False, device="meta")
        with self.assertRaisesRegex(ValueError, r"module: .*'parameter_bytes'.* 4e\+18"):
            tierpilot.describe(wide, torch.empty(1, 1_000_000_000, device="meta"), batch=1)

    def test_within_inference_mode_operators_are_the_same(self):
        class Own(nn.Module):
            def __init__(self, model):
                super().__init__()
                self.model = model

            def forward(self, x):
                with torch.inference_mode():
                    return self.model(x)

        def model():
            layers = nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.AdaptiveAvgPool2d(2), nn.Flatten()
            return nn.Sequential(*layers, nn.LayerNorm(16), nn.Linear(16, 5), nn.Softmax(-1))

        expected = tierpilot.describe(model(), torch.randn(2, 3, 8, 8))
        self.assertEqual(expected["unknown_operators"], {})
        self.assertEqual(tierpilot.describe(Own(model()), torch.randn(2, 3, 8, 8)), expected)
        outer = model()
        with torch.inference_mode():
            self.assertEqual(tierpilot.describe(outer, torch.randn(2, 3, 8, 8)), expected)
            self.assertEqual(tierpilot.describe(model(), torch.randn(2, 3, 8, 8)), expected)

    def test_what_is_no_figure_is_named(self):
        for name in ("iterations", "threads", "samples_per_s", "load_s", "loads_ahead"):
            for wrong in ("ten", None, [1], float("inf"), float("nan")):
                with self.assertRaisesRegex(ValueError, f"^{name}: .*{wrong!r}".replace("[1]", r"\[1\]")):
                    tierpilot.describe(perceptron(), torch.randn(1, 8), job={name: wrong})
        for wrong in ("ten", float("inf"), float("nan")):
            with self.assertRaisesRegex(ValueError, f"^iterations: {wrong!r} is no whole number"):
                tierpilot.describe(perceptron(), torch.randn(1, 8), iterations=wrong)
        with self.assertRaisesRegex(TypeError, "job: a dict is needed, not a str"):
            tierpilot.describe(perceptron(), torch.randn(1, 8), job="Adam")

    def test_limits_are_those_of_the_schema(self):
        def described(name, value):
            if name == "batch":
                return tierpilot.describe(perceptron(), torch.randn(1, 8), batch=value)[name]
            return tierpilot.describe(perceptron(), torch.randn(1, 8), job={name: value})["job"][name]

        fields = {"batch": SCHEMA["properties"]["batch"], **SCHEMA["properties"]["job"]["properties"]}
        for name in ("batch", "iterations", "threads", "samples_per_s", "load_s"):
            least, most = fields[name]["minimum"], fields[name]["maximum"]
            self.assertEqual(described(name, least), least)
            self.assertEqual(described(name, most), most)
            for wrong in (2 * most, least / 2 if least else -1):
                with self.assertRaisesRegex(ValueError, f"^{name}: "):
                    described(name, wrong)

    def test_fields_are_those_of_the_schema(self):
        card = tierpilot.describe(perceptron(), torch.randn(1, 8), iterations=1)
        for name in SCHEMA["required"]:
            self.assertIn(name, card)
        for name in card:
            self.assertIn(name, SCHEMA["properties"])
        of_operator = SCHEMA["properties"]["operators"]["additionalProperties"]
        for use in card["operators"].values():
            self.assertEqual(sorted(use), sorted(of_operator["properties"]))
        json.dumps(card, allow_nan=False)


if __name__ == "__main__":
    unittest.main()
