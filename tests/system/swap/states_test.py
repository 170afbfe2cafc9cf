#!/usr/bin/env python3
"""States of optimisers that are away between steps: values are those without, whatever the optimiser and whoever looks."""
import collections
import contextlib
import copy
import io
import json
import os
import pickle
import re
import subprocess
import sys
import tempfile
import threading
import unittest
import unittest.mock
import warnings

from scene import BIG, PROGRAM, Case, Swap, used
from state_scene import OPTIMISERS, Training, everything_leaves

import torch  # after scene, which skips without it
from tierpilot.hooks import torch_loop
from tierpilot.swapping.optimisers import States

with open("/proc/self/status", encoding="ascii") as status:  # as long as there is nothing else
    OWN_BYTES = int(re.search(r"RssAnon:\s+(\d+)", status.read())[1]) << 10


class Values(Case):
    def test_parameters_and_states_are_those_without_to_the_last_bit(self):
        for name, made in OPTIMISERS.items():
            with self.subTest(optimiser=name):
                swap = everything_leaves()
                ours = Training(made, swap).slow_steps(3)
                self.assertGreater(ours.away(), 0 if name == "lbfgs" else 6)
                self.assertGreater(swap.statistics()["state_saves"], 1 if name == "lbfgs" else 12)
                self.same([ours.values()], [Training(made).steps(3).values()])
                del ours
                self.assertEqual(used(swap), 0)

    def test_who_looks_at_them_in_inference_mode_leaves_them_to_the_optimiser(self):
        swap = everything_leaves()
        ours = Training(OPTIMISERS["adam"], swap).slow_steps(2)
        with torch.inference_mode():
            copy.deepcopy(ours.optimiser.state_dict())
        self.same([ours.slow_steps(2).values()], [Training(OPTIMISERS["adam"]).steps(4).values()])

    def test_they_stay_where_there_is_room(self):
        plain = Training(OPTIMISERS["adam"]).steps(4).values()
        for budget in (BIG, "1MiB"):
            for policy in ("swap", "capuchin", "none"):
                with self.subTest(budget=budget, policy=policy), warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    swap = Swap(budget, policy, "memory=256MiB", states=True)
                    leaves = policy != "none" and budget != BIG
                    ours = Training(OPTIMISERS["adam"], swap)
                    ours.slow_steps(4) if leaves else ours.steps(4)
                    self.assertEqual(ours.away(60 if leaves else 0.2), 24 if leaves else 0)
                    self.same([ours.values()], [plain])

    def test_policy_swap_lets_them_leave_unless_told_not_to(self):
        for settings, leave in (({}, True), ({"policy": "capuchin"}, False), ({"policy": "swap-all"}, False), ({"states": False}, False)):
            with self.subTest(**settings), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                swap = Swap("1MiB", **{"policy": "swap", "tiers": "memory=256MiB", **settings})
                model = torch.nn.Linear(512, 512)
                optimiser = OPTIMISERS["adam"](model.parameters())
                for _ in range(3):
                    with swap:
                        loss = model(torch.ones(64, 512)).square().sum()
                    loss.backward()
                    optimiser.step()
                self.assertEqual(swap.statistics()["state_saves"] > 0, leave)

    # An embedding's: 64 MiB, twice that of states, all of which are there while they are updated.
    def test_what_leaves_in_vain_stays(self):
        model = torch.nn.Embedding(1 << 16, 256)
        optimiser = OPTIMISERS["adam"](model.parameters())
        swap = Swap("1MiB", "swap", "memory=512MiB")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            let_leave = []
            for _ in range(10):
                with swap:
                    loss = model(torch.arange(1 << 14)).sin().square().sum()
                loss.backward()
                optimiser.step()
                let_leave.append(swap.statistics()["state_saves"])
        self.assertGreater(let_leave[0], 0)
        self.assertEqual(let_leave[-1], let_leave[-4])

    def test_a_tier_that_is_full_keeps_the_rest_here(self):
        swap = Swap(BIG, "swap-all", "memory=4MiB", states=True)
        ours = Training(OPTIMISERS["adam"], swap).steps(4)
        self.assertGreater(swap.statistics()["refused"], 0)
        self.same([ours.values()], [Training(OPTIMISERS["adam"]).steps(4).values()])

    def test_gradients_that_are_added_up_over_several_passes(self):
        def train(swap):
            training = Training(OPTIMISERS["adam"], swap)
            for set_to_none in (True, False, True):
                training.optimiser.zero_grad(set_to_none=set_to_none)
                for _ in range(3):
                    training.loss()
                training.optimiser.step()
                if swap is not None:  # what is asked for while its copy runs stays for that step
                    training.away()
            return training

        ours = train(everything_leaves())
        self.assertGreater(ours.away(), 12)
        self.same([ours.values()], [train(None).values()])

    def test_a_closure_is_asked_once(self):
        def train(swap):
            training, asked = Training(OPTIMISERS["adam"], swap), []

            def closure():
                asked.append(1)
                training.optimiser.zero_grad()
                return training.loss()

            losses = [training.optimiser.step(closure).item() for _ in range(3)]
            losses.append(training.optimiser.step(closure=closure).item())
            self.assertEqual(len(asked), 4)
            return [torch.tensor(losses), *training.values()]

        self.same([train(everything_leaves())], [train(None)])

    def test_groups_that_are_added_and_changed(self):
        def train(swap):
            training = Training(lambda p: torch.optim.Adam(list(p)[:6], 1e-3), swap).steps(2)
            training.optimiser.add_param_group({"params": list(training.model.parameters())[6:], "lr": 1e-2})
            training.slow_steps(2)
            training.optimiser.param_groups[0]["lr"] = 1e-4
            return training.slow_steps(2)

        ours = train(everything_leaves())
        self.assertGreater(ours.away(), 12)
        self.same([ours.values()], [train(None).values()])

    def test_schedules_and_classes_from_before_and_after(self):
        def train(swap):
            training = Training(OPTIMISERS["adam"])
            schedule = torch.optim.lr_scheduler.StepLR(training.optimiser, 2)
            training.swap = swap or training.swap
            for _ in range(4):
                training.slow_steps(1)
                schedule.step()
            return training

        ours = train(everything_leaves())
        self.assertGreater(ours.away(), 12)
        self.same([ours.values()], [train(None).values()])

        class Later(torch.optim.Adam):
            def step(self, closure=None):
                super().step(closure)

        ours = Training(lambda p: Later(p, 1e-3), everything_leaves()).slow_steps(3)
        self.assertGreater(ours.away(), 12)
        self.same([ours.values()], [Training(OPTIMISERS["adam"]).steps(3).values()])

    def test_a_step_that_the_program_has_put_in_the_place_of_a_class_s_own(self):
        def train(swap):
            training, asked = Training(OPTIMISERS["adam"], swap).steps(1), []
            own = torch.optim.Adam.step

            def decaying(self, closure=None):
                asked.append(1)
                for group in self.param_groups:
                    group["lr"] *= 0.5
                return own(self, closure)

            torch.optim.Adam.step = decaying
            try:
                training.slow_steps(3)  # a `with` lies within each
            finally:
                torch.optim.Adam.step = own
            return [*training.slow_steps(1).values(), torch.tensor([len(asked), training.optimiser.param_groups[0]["lr"]])]

        self.same([train(everything_leaves())], [train(None)])

    def test_beneath_the_hooks_that_report_losses(self):
        class Progress:
            def advance(self, loss):
                steps.append(loss())

        scaler, steps = torch.cuda.amp.GradScaler, []
        patches = [(torch.Tensor, "backward"), (torch.optim.Optimizer, "__init__"), (torch.optim.Adam, "step"), (scaler, "scale")]
        with contextlib.ExitStack() as stack:
            for of, name in patches:  # what stands there is put back afterwards
                stack.enter_context(unittest.mock.patch.object(of, name, getattr(of, name)))
            torch_loop.watch(torch, Progress())
            in_parts = stack.enter_context(unittest.mock.patch.object(States, "_step_parts", autospec=True, side_effect=States._step_parts))
            ours = Training(OPTIMISERS["adam"], everything_leaves()).slow_steps(3)
        self.assertEqual(len(steps), 3)
        self.assertGreaterEqual(in_parts.call_count, 2)
        self.same([ours.values()], [Training(OPTIMISERS["adam"]).steps(3).values()])

    def test_two_optimisers_in_two_threads(self):
        swap = everything_leaves()
        trainings = [Training(OPTIMISERS["adam"], swap), Training(OPTIMISERS["momentum"], swap)]

        def work(training):  # their random numbers would be one another's
            for step in range(6):
                with training.swap:
                    loss = (training.model(torch.full((16, 512), 0.1 + step)) ** 2).sum()
                training.optimiser.zero_grad()
                loss.backward()
                training.optimiser.step()

        threads = [threading.Thread(target=work, args=(training,)) for training in trainings]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for ours, name in zip(trainings, ("adam", "momentum")):
            self.assertGreater(ours.away(), 6)
            plain = Training(OPTIMISERS[name])
            work(plain)
            self.same([ours.values()], [plain.values()])


class Copies(Case):
    def continued(self, make_copy):
        """What a training is that goes on with the copy of an optimiser whose states are away."""
        ours = Training(OPTIMISERS["adam"], everything_leaves()).slow_steps(3)
        self.assertGreater(ours.away(), 12)
        plain = Training(OPTIMISERS["adam"]).steps(3)
        for training in (ours, plain):
            make_copy(training)
            training.slow_steps(2)
        self.assertGreater(ours.away(), 12)
        self.same([ours.values()], [plain.values()])

    def test_state_dicts(self):
        def saved_and_loaded(training):
            file = io.BytesIO()
            torch.save(training.optimiser.state_dict(), file)
            file.seek(0)
            state = torch.load(file)
            # Without Tierpilot, too.
            self.assertLessEqual({type(one) for one in state["state"].values()}, {dict, collections.OrderedDict})
            training.optimiser = OPTIMISERS["adam"](training.model.parameters())
            training.optimiser.load_state_dict(state)

        self.continued(saved_and_loaded)
        self.continued(lambda training: training.optimiser.load_state_dict(training.optimiser.state_dict()))

    def test_pickles_and_deep_copies(self):
        def pickled(training):
            training.model, training.optimiser = pickle.loads(pickle.dumps((training.model, training.optimiser)))

        def copied(training):
            training.model, training.optimiser = copy.deepcopy((training.model, training.optimiser))

        self.continued(pickled)
        self.continued(copied)


class Failures(Case):
    def test_a_step_that_fails_changes_as_little_as_without(self):
        ours, plain = Training(OPTIMISERS["adam"], everything_leaves()), Training(OPTIMISERS["adam"])
        for training in (ours, plain):
            training.steps(2)
            training.loss()
            last = list(training.model.parameters())[-1]
            last.grad = last.grad.to_sparse()
            with self.assertRaisesRegex(RuntimeError, "sparse"):
                training.optimiser.step()
            training.steps(2)
        self.same([ours.values()], [plain.values()])

        def broken():
            raise ValueError("no loss")

        for training in (ours, plain):
            with self.assertRaisesRegex(ValueError, "no loss"):
                training.optimiser.step(broken)
            with self.assertRaises(TypeError):
                training.optimiser.step(clsoure=broken)
            training.steps(1)
        self.same([ours.values()], [plain.values()])

    def test_a_forked_child_steps_without_and_cannot_have_what_is_away(self):
        ours = Training(OPTIMISERS["adam"], everything_leaves()).slow_steps(2)
        self.assertGreater(ours.away(), 12)
        child = os.fork()
        if child == 0:
            code = 1
            try:
                Training(OPTIMISERS["adam"]).steps(2)
                try:
                    ours.optimiser.state_dict()["state"][0]["exp_avg"]
                except RuntimeError as error:
                    code = 0 if "forked" in str(error) else 2
            finally:
                os._exit(code)
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 0)
        self.same([ours.values()], [Training(OPTIMISERS["adam"]).steps(2).values()])

    def test_an_optimiser_that_ends_frees_what_it_has_away(self):
        swap = everything_leaves()
        for _ in range(2):
            ours = Training(OPTIMISERS["adam"], swap).slow_steps(2)
            self.assertGreater(ours.away(), 12)
            ours.optimiser.state.clear()
            self.assertEqual(used(swap), 0)
        self.assertEqual(swap.statistics()["state_bytes"], 0)


class Programs(Case):
    # 96 MiB of parameters, and twice that of states; a schedule that is there before anything is swapped.
    SCRIPT = """
import torch
torch.manual_seed(3)
model = torch.nn.Sequential(*[torch.nn.Linear(1024, 1024) for _ in range(24)])
optimiser = torch.optim.Adam(model.parameters(), 1e-4)
schedule = torch.optim.lr_scheduler.ExponentialLR(optimiser, 0.9)
for _ in range(6):
    loss = model(torch.ones(16, 1024)).square().sum()
    optimiser.zero_grad()
    loss.backward()
    optimiser.step()
    schedule.step()
print(loss.item(), model[0].weight.sum().item(), optimiser.state[model[0].weight]["exp_avg_sq"].sum().item())
"""

    def budget(self):
        """Weights, gradients and a part of the states beside what PyTorch itself has, which differs by version: 400 MiB with 1.13."""
        return max(400 << 20, OWN_BYTES + (288 << 20))

    def run_it(self, budget, *options):
        with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
            report = os.path.join(folder, "report")
            ended = subprocess.run(
                [PROGRAM, "run", "--budget", str(budget), "--tiers", f"dir:{folder}=1GiB", "--report", report, *options,
                 "--", sys.executable, "-c", self.SCRIPT],
                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=300,
            )
            self.assertEqual(ended.returncode, 0, ended.stderr)
            with open(report, encoding="utf-8") as file:
                return ended.stdout, json.loads(file.read())

    def test_a_budget_that_states_alone_are_more_than_is_held(self):
        plain = subprocess.run([sys.executable, "-c", self.SCRIPT], stdout=subprocess.PIPE, text=True, timeout=300)
        budget = self.budget()
        without, said_without = self.run_it(budget, "--no-states")
        with_states, said = self.run_it(budget)
        self.assertEqual((without, with_states), (plain.stdout, plain.stdout))
        self.assertEqual(said_without["state_saves"], 0)
        self.assertGreater(said_without["last_peak_bytes"], budget)
        if "LD_PRELOAD" not in os.environ:  # a sanitizer needs memory itself
            self.assertLessEqual(said["last_peak_bytes"], budget)
            self.assertLess(said["last_peak_bytes"], 0.8 * said_without["last_peak_bytes"])


if __name__ == "__main__":
    unittest.main()
