#!/usr/bin/env python3
"""Who else has the states of an optimiser: what they read and what they write is as without, and what they hold stays."""
import copy
import unittest

from scene import Case
from state_scene import OPTIMISERS, Training, everything_leaves

import numpy
import torch  # after scene, which skips without it


class Holders(Case):
    def held(self, hold, write=lambda held: None, away_again=24):
        """Trains with somebody who takes hold of the first parameter's moments between steps, writes to them after the next
        step and lets them go; what it saw and what becomes of the training, with and without."""

        def train(swap):
            training = Training(OPTIMISERS["adam"], swap).slow_steps(2)
            if swap:
                self.assertEqual(training.away(), 24)
            seen = []
            for _ in range(2):
                held = hold(training.optimiser.state[training.model[0].weight])
                training.steps(1)
                if swap:
                    self.assertLess(training.away(0.2), 24)
                write(held)
                seen.append(torch.as_tensor(held).clone())
                del held
                training.steps(1)
            if swap:
                self.assertEqual(training.away(0.2 if away_again < 24 else 60), away_again)
            return [*training.values(), *seen]

        self.same([train(everything_leaves())], [train(None)])

    def test_a_tensor(self):
        self.held(lambda state: state["exp_avg"])
        self.held(lambda state: state["exp_avg"], lambda held: held.mul_(2))

    def test_a_tensor_stays_the_same_one(self):
        ours = Training(OPTIMISERS["adam"], everything_leaves()).slow_steps(2)
        state = ours.optimiser.state[ours.model[0].weight]
        held = state["exp_avg"]
        ours.steps(2)
        ours.away(0.2)
        self.assertIs(state["exp_avg"], held)

    def test_a_view(self):
        self.held(lambda state: state["exp_avg"].view(-1)[7:], lambda held: held.add_(1))

    def test_what_has_another_version_counter(self):
        self.held(lambda state: state["exp_avg"].data[3:5], lambda held: held.fill_(0.5))
        self.held(lambda state: state["exp_avg"].detach().t(), lambda held: held.fill_(0.5))

    def test_an_array(self):
        # PyTorch remembers that an array has had the memory, and not whether it is gone: that stays.
        fill = lambda held: held.fill(0.5)  # noqa: E731
        self.held(lambda state: state["exp_avg"].numpy(), fill, away_again=23)
        self.held(lambda state: state["exp_avg"].view(-1).numpy()[2:9], fill, away_again=23)
        self.held(lambda state: memoryview(state["exp_avg"].view(-1)[1:].numpy()), away_again=23)

    def test_a_dict_from_before_anything_left(self):
        def train(swap):
            training = Training(OPTIMISERS["adam"]).steps(1)
            state = training.optimiser.state_dict()
            training.swap = swap or training.swap
            training.steps(2)
            state["state"][0]["exp_avg"].mul_(2)
            training.steps(2)
            return [*training.values(), state["state"][0]["exp_avg"]]

        self.same([train(everything_leaves())], [train(None)])

    def test_memory_of_an_array_that_is_a_state(self):
        def train(swap):
            training = Training(OPTIMISERS["adam"], swap).steps(2)
            array = numpy.zeros((512, 512), dtype=numpy.float32)
            training.optimiser.state[training.model[0].weight]["exp_avg"] = torch.from_numpy(array)
            training.steps(2)
            array[:] = 0.25
            training.steps(2)
            return [*training.values(), torch.from_numpy(array)]

        self.same([train(everything_leaves())], [train(None)])

    def test_what_is_written_into_the_dict(self):
        def train(swap):
            training = Training(OPTIMISERS["adam"], swap).steps(2)
            states = training.optimiser.state
            first, second, third = (training.model[at].weight for at in range(3))
            states[first]["exp_avg"] = torch.full((512, 512), 0.01)
            states[second]["exp_avg"] = states[third]["exp_avg"]  # one tensor for two
            states[third].update(exp_avg_sq=torch.full((512, 512), 0.02))
            states[third]["mine"] = torch.ones(512, 512)
            training.steps(3)
            return training.values()

        self.same([train(everything_leaves())], [train(None)])

    def test_none_that_is_written_while_it_is_away(self):
        def train(swap):
            training = Training(OPTIMISERS["momentum"], swap).slow_steps(2)
            for state in training.optimiser.state.values():
                state["momentum_buffer"] = None
            return training.steps(2).values()

        self.same([train(everything_leaves())], [train(None)])

    def test_what_is_not_plain_stays(self):
        ours = Training(OPTIMISERS["adam"], everything_leaves()).slow_steps(2)
        state = ours.optimiser.state[ours.model[0].weight]
        base = torch.zeros(2, 512, 512)
        strange = {
            "view": base[0],
            "graph": torch.ones(512, 512, requires_grad=True) * 2,
            "conjugate": torch.zeros(512, 512, dtype=torch.complex64).conj(),
            "shared": torch.zeros(512, 512).share_memory_(),
            "sparse": torch.zeros(512, 512).to_sparse(),
            "subclass": torch.nn.Parameter(torch.zeros(512, 512)),
            "gaps": torch.zeros(512, 512).as_strided((256, 512), (1024, 1)),
        }
        state.update(strange)
        del strange
        ours.steps(2)
        ours.away()
        for name in ("view", "graph", "conjugate", "shared", "sparse", "subclass", "gaps"):
            value = dict.__getitem__(state, name)
            kept = getattr(value, "kept", None)
            self.assertTrue(kept is None or kept.tensor is not None and not kept.number, name)


class Dicts(Case):
    """All ways to read a dict whose tensors are away."""

    READERS = {
        "[]": lambda state: {key: state[key] for key in state},
        "get": lambda state: {key: state.get(key) for key in state.keys()},
        "items": lambda state: dict(list(state.items())),
        "values": lambda state: dict(zip(state, state.values())),
        "dict": dict,
        "**": lambda state: {**state},
        "|": lambda state: {} | state,
        "or": lambda state: state | {},
        "|=": lambda state: _updated({}, state),
        "update": lambda state: _updated_by_method({}, state),
        "copy": lambda state: state.copy(),
        "copy.copy": copy.copy,
        "deepcopy": copy.deepcopy,
        "setdefault": lambda state: {key: state.setdefault(key, 0) for key in list(state)},
        "pop": lambda state: {key: state.pop(key) for key in list(state)},
        "popitem": lambda state: dict(reversed([state.popitem() for _ in range(len(state))])),
        "comprehension": lambda state: {key: value for key, value in state.items()},
        # As Lightning and Accelerate go through nested mappings.
        "its class": lambda state: type(state)(state),
        "its class, of pairs": lambda state: type(state)((key, value) for key, value in state.items()),
        "its class, named": lambda state: type(state)(**state),
        "its class, from keys": lambda state: _updated(type(state).fromkeys(state), state),
        "pytree": lambda state: torch.utils._pytree.tree_map(lambda value: value, {"state": state})["state"],
    }

    def test_all_of_them_find_the_tensors(self):
        plain = Training(OPTIMISERS["adam"]).steps(2)
        expected = plain.optimiser.state[plain.model[0].weight]
        for name, read in self.READERS.items():
            with self.subTest(reader=name):
                ours = Training(OPTIMISERS["adam"], everything_leaves()).slow_steps(2)
                self.assertEqual(ours.away(), 24)
                read_values = read(ours.optimiser.state[ours.model[0].weight])
                self.assertIs(type(read_values), dict)
                self.assertEqual(list(read_values), list(expected))
                self.same([list(read_values.values())], [list(expected.values())])

    def test_what_is_asked_of_the_dict_itself(self):
        ours = Training(OPTIMISERS["adam"], everything_leaves()).slow_steps(2)
        state = ours.optimiser.state[ours.model[0].weight]
        self.assertIsInstance(state, dict)
        self.assertIn("exp_avg", state)
        self.assertNotIn("none", state)
        self.assertEqual((len(state), state.get("none", 3), state.pop("none", 4)), (3, 3, 4))
        with self.assertRaises(KeyError):
            state["none"]
        self.assertEqual(ours.away(), 24, "nothing has been looked at")
        self.assertIn("tensor(", repr(state))
        self.assertFalse(state == {} or {} == state)
        self.assertTrue(state != {})
        self.assertIs(state["exp_avg"], state["exp_avg"])
        del state["exp_avg"]
        self.assertNotIn("exp_avg", state)
        state.clear()
        self.assertEqual(len(state), 0)


def _updated(one, other):
    one |= other
    return one


def _updated_by_method(one, other):
    one.update(other)
    return one


if __name__ == "__main__":
    unittest.main()
