#!/usr/bin/env python3
"""tierpilot.swap with a real PyTorch: values never change, whatever leaves memory.

Arguments: the folder of the Python module, libtierpilot-swap, tierpilot-swap. Skips (77) without
PyTorch.
"""
import gc
import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
import unittest
import warnings

MODULES, LIBRARY, PROGRAM = sys.argv[1:4]
del sys.argv[1:4]
sys.path.insert(0, MODULES)
os.environ["TIERPILOT_SWAP_LIBRARY"] = LIBRARY

import tierpilot  # noqa: E402

try:
    import torch
except ImportError as error:
    print(f"skipped: no PyTorch for {sys.executable}: {error}")
    sys.exit(77)

from tierpilot.swapping import Swap  # noqa: E402

torch.set_num_threads(1)
BIG = "8GiB"  # never reached


class Residual(torch.nn.Module):
    """Shared storages (a sum's branches), views, changes in place."""

    def __init__(self, width):
        super().__init__()
        self.first = torch.nn.Conv2d(width, width, 3, padding=1)
        self.norm = torch.nn.BatchNorm2d(width)
        self.second = torch.nn.Conv2d(width, width, 3, padding=1)

    def forward(self, x):
        return torch.nn.functional.relu_(self.second(torch.relu_(self.norm(self.first(x)))) + x)


def net():
    torch.manual_seed(5)
    return torch.nn.Sequential(
        torch.nn.Conv2d(3, 16, 3, padding=1),
        Residual(16),
        torch.nn.MaxPool2d(2),
        Residual(16),
        torch.nn.Flatten(),
        torch.nn.Linear(16 * 64, 32),
        torch.nn.Tanh(),
        torch.nn.Dropout(0.2),
        torch.nn.Linear(32, 10),
    )


def data(size, seed=7):
    random = torch.Generator().manual_seed(seed)
    return (
        torch.randn(size, 3, 16, 16, generator=random),
        torch.randint(0, 10, (size,), generator=random),
    )


def train(swap, batches=(24, 24, 24, 9, 24, 24, 9, 24), evaluate=True):
    """Every gradient of a training with short batches and looks at other data in between."""
    model, seen = net(), []
    optimiser = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    torch.manual_seed(11)
    for step, size in enumerate(batches):
        x, y = data(size, step)
        if swap is None:
            loss = torch.nn.functional.cross_entropy(model(x), y)
        else:
            with swap:
                loss = torch.nn.functional.cross_entropy(model(x), y)
        optimiser.zero_grad()
        loss.backward()
        seen.append([p.grad.clone() for p in model.parameters()])
        optimiser.step()
        if evaluate and step % 3 == 1:
            model.eval()
            with torch.no_grad():
                model(data(5)[0])
            model.train()
    return seen


def used(swap):
    """Bytes that the pool holds."""
    gc.collect()
    swap._reap()
    return sum(tier["used_bytes"] for tier in swap.tiers())


class Case(unittest.TestCase):
    def same(self, one, other):
        self.assertEqual(len(one), len(other))
        for ours, plain in zip(one, other):
            for a, b in zip(ours, plain):
                self.assertTrue(torch.equal(a, b))


class Values(Case):
    def test_gradients_are_those_without_to_the_last_bit(self):
        plain = train(None)
        for policy in ("swap-all", "swap", "capuchin", "vdnn", "none"):
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


class Changes(Case):
    def test_what_is_changed_in_place_is_refused_as_autograd_does(self):
        for policy in ("none", "swap-all"):
            with self.subTest(policy=policy):
                x = torch.randn(256, 512, requires_grad=True)
                with Swap(BIG, policy, "memory=64MiB") as swap:
                    made = x * 1
                    y = made.exp()
                    z = (made * y).sum()
                    expected = torch.autograd.grad((x * x.exp()).sum(), x)[0]
                    y.add_(1)
                    try:
                        got = torch.autograd.grad(z, x)[0]
                    except RuntimeError as error:
                        self.assertIn("inplace operation", str(error))
                    else:  # it had left before the change
                        self.assertEqual(policy, "swap-all")
                        self.assertGreater(swap.statistics()["copies_out"], 0)
                        self.assertTrue(torch.allclose(got, expected))

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


class Budgets(Case):
    def test_one_that_is_too_small_says_what_is_needed(self):
        swap = Swap("1MiB", "swap", "memory=256MiB")
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            train(swap, (24,) * 4)
        texts = [str(warning.message) for warning in said if "too small" in str(warning.message)]
        self.assertEqual(len(texts), 1, texts)
        self.assertRegex(texts[0], r"budget of 1 MiB is too small: .* needs \d+ MiB")

    def test_a_step_without_memory_runs_again_with_everything_away(self):
        swap = Swap(BIG, "swap", "memory=256MiB")
        model = net()
        x, y = data(24)
        failures, seen = [3, 5], []

        def work():
            model.zero_grad()
            loss = torch.nn.functional.cross_entropy(model(x), y)
            if len(seen) in failures:
                failures.remove(len(seen))
                raise RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried")
            loss.backward()
            return [p.grad.clone() for p in model.parameters()]

        def training():
            torch.manual_seed(2)
            for _ in range(8):
                seen.append(swap.step(work))
            return seen

        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            ours = list(training())
        self.assertEqual(len([w for w in said if "runs again" in str(w.message)]), 2)
        self.assertEqual(swap.statistics()["failures"], 2)
        failures, seen = [], []
        model = net()
        torch.manual_seed(2)
        swap = Swap(BIG, "none")
        self.same(ours, training())
        with self.assertRaisesRegex(RuntimeError, "something else"):
            swap.step(lambda: (_ for _ in ()).throw(RuntimeError("something else")))

    def test_its_figures_go_to_the_node_that_runs_the_task(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "job.sock")
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
                listener.bind(path)
                listener.listen()
                ended = subprocess.run(
                    [PROGRAM, "run", "--budget", BIG, "--policy", "swap-all", "--tiers", "memory=64MiB",
                     "--", sys.executable, "-c", Programs.SCRIPT],
                    env={**os.environ, "TIERPILOT_JOB_SOCKET": path}, stdout=subprocess.DEVNULL, timeout=300,
                )
                self.assertEqual(ended.returncode, 0)
                node, _ = listener.accept()
                with node:
                    lines = [json.loads(line) for line in node.recv(1 << 20).splitlines()]
        self.assertEqual(len(lines), 4)
        self.assertGreater(lines[-1]["measures"]["swap_bytes_in"], 4 << 18)

    def test_wrong_settings_say_what_is_wrong(self):
        for settings, words in (
            (("fast",), "a budget is a size"),
            ((0,), "above 0"),
            ((BIG, "magic"), "policy 'magic' is not known; there are swap"),
            ((BIG, "swap", "dir:/nonexistent=1GiB"), "No such file"),
            ((BIG, "swap", "node77=1GiB"), "no NUMA node 77"),
            ((BIG, "swap", "memory"), "NAME=SIZE"),
        ):
            with self.subTest(settings=settings), self.assertRaisesRegex(ValueError, words):
                Swap(*settings)

    def test_the_same_settings_are_the_same_swap(self):
        self.assertIs(tierpilot.swap(BIG, "none"), tierpilot.swap(BIG, "none"))


class Programs(Case):
    SCRIPT = """
import sys, torch
torch.manual_seed(3)
model = torch.nn.Sequential(*[torch.nn.Linear(512, 512) for _ in range(6)])
for _ in range(4):
    loss = model(torch.ones(256, 512)).square().sum()
    model.zero_grad()
    loss.backward()
print(model[0].weight.grad.sum().item(), sys.argv[1:])
"""

    def run_it(self, *before, **environment):
        return subprocess.run(
            [*before, sys.executable, "-c", self.SCRIPT, "--lr", "1"],
            env={**os.environ, **environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            timeout=300,
        )

    def test_a_script_that_knows_nothing_of_it(self):
        plain = self.run_it()
        with tempfile.NamedTemporaryFile() as report:
            swapped = self.run_it(
                PROGRAM, "run", "--budget", BIG, "--policy", "swap-all", "--tiers", "memory=64MiB",
                "--report", report.name, "--"
            )
            self.assertEqual(swapped.returncode, 0, swapped.stderr)
            self.assertEqual(swapped.stdout, plain.stdout)
            said = json.loads(report.read())
        self.assertGreater(said["copies_in"], 4)

    def test_wrong_arguments_start_nothing(self):
        ended = self.run_it(PROGRAM, "run", "--budget", "much", "--")
        self.assertEqual((ended.returncode, ended.stdout), (2, ""))
        self.assertIn("--budget", ended.stderr)

    def test_the_module_needs_no_torch_for_jobs(self):
        code = "import sys; sys.modules['torch'] = None; import tierpilot; tierpilot.job()"
        subprocess.run([sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": MODULES}, check=True)


if __name__ == "__main__":
    unittest.main()
