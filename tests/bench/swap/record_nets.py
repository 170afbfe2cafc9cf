#!/usr/bin/python3
"""Writes operator logs, in the format of Dynamic Tensor Rematerialization, of one training step of
each net in nets.py: every operator below autograd as it runs, with its storages, views and in-place
changes. Sizes are real; times are those of a GPU by its bandwidth and arithmetic (a roofline with a
launch time), so that a log is the same on every machine.

    record_nets.py DIRECTORY [NET ...]
"""
import json
import pathlib
import sys

import torch
from torch.utils._python_dispatch import TorchDispatchMode

import nets

BYTES_PER_NS, FLOPS_PER_NS, LAUNCH_NS, VIEW_NS = 600.0, 10_000.0, 5_000, 2_000


def tensors_in(values):
    for value in values:
        if isinstance(value, torch.Tensor):
            yield value
        elif isinstance(value, (list, tuple)):
            yield from tensors_in(value)


def flops(name, args, results):
    if "conv" in name:
        backward = "backward" in name
        weight = args[2] if backward else args[1]
        out = args[0] if backward else results[0]
        transposed = args[7] if backward else args[6]
        per = weight.shape[0] if transposed else weight[0].numel()
        if transposed:
            per = weight.shape[0] * weight.shape[2] * weight.shape[3] / (args[4 if backward else 3][0] ** 2)
        return 2 * out.numel() * per * (2 if backward else 1)
    if name.endswith("mm"):
        return 2 * results[0].numel() * args[-2].shape[-1]
    return 0


class Recorder(TorchDispatchMode):
    def __init__(self, file):
        super().__init__()
        self.file, self.count = file, 0
        self.names, self.live = {}, {}  # (storage, geometry) -> name; storage -> (weak, names)

    def line(self, kind, **rest):
        self.file.write(json.dumps({"INSTRUCTION": kind, **rest}, separators=(",", ":")) + "\n")

    def key(self, tensor):
        return (tensor.storage()._cdata, tensor.storage_offset(), tuple(tensor.shape), tensor.stride())

    def new_name(self, tensor):
        storage = tensor.storage()
        if storage._cdata not in self.live:
            self.live[storage._cdata] = (storage._weak_ref(), [])
        self.count += 1
        name = f"x{self.count}"
        self.live[storage._cdata][1].append(name)
        self.names[self.key(tensor)] = name
        return name

    def argument(self, tensor):
        if name := self.names.get(self.key(tensor)):
            return name
        known = tensor.storage()._cdata in self.live
        if known:  # a view that was made out of sight
            first = self.live[tensor.storage()._cdata][1][0]
            name = self.new_name(tensor)
            self.line("COPY", DST=name, SRC=first)
            return name
        name = self.new_name(tensor)
        self.line("CONSTANT", NAME=name)
        self.line("MEMORY", NAME=name, MEMORY=str(tensor.storage().nbytes()))
        return name

    def sweep(self):
        for pointer, (weak, names) in list(self.live.items()):
            if torch._C.StorageBase._expired(weak):
                torch._C.StorageBase._free_weak_ref(weak)
                for name in names:
                    self.line("RELEASE", NAME=name)
                del self.live[pointer]
                self.names = {k: v for k, v in self.names.items() if k[0] != pointer}

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.sweep()
        name = func._schema.name.split("::")[1]
        read = list(tensors_in(args)) + list(tensors_in((kwargs or {}).values()))
        names = [self.argument(tensor) for tensor in read]
        keys = [tensor.storage()._cdata for tensor in read]
        returned = func(*args, **(kwargs or {}))
        results = [t for t in tensors_in([returned])]
        written = {a.name for a in func._schema.arguments if a.alias_info and a.alias_info.is_write}
        given = dict(zip([a.name for a in func._schema.arguments], args), **(kwargs or {}))
        changed = {self.names[self.key(t)] for t in tensors_in([v for k, v in given.items() if k in written])}
        if name == "detach":
            copy = self.new_name(results[0])
            self.line("COPY", DST=copy, SRC=names[0])
        elif changed:
            moved = sum(t.numel() * t.element_size() for t in read)
            self.line("MUTATE", NAME=name, ARGS=names, MUTATE=[names.index(n) for n in sorted(changed)],
                      TIME=str(int(LAUNCH_NS + moved / BYTES_PER_NS)))
        elif results:
            self.call(name, names, keys, read, args, results)
        return returned

    def call(self, name, names, keys, read, args, results):
        aliases = [keys.index(t.storage()._cdata) if t.storage()._cdata in keys else -1 for t in results]
        moved = sum(t.numel() * t.element_size() for t in read + results)
        time = VIEW_NS if all(a >= 0 for a in aliases) else LAUNCH_NS + int(
            max(moved / BYTES_PER_NS, flops(name, args, results) / FLOPS_PER_NS))
        made = [self.new_name(t) for t in results]
        self.line("CALL", NAME=name, ARGS=names, RESULT=made, TIME=str(time))
        for result, alias, tensor in zip(made, aliases, results):
            self.line("MEMORY", NAME=result, MEMORY=str(tensor.storage().nbytes()))
            self.line("ALIAS", NAME=result, ALIAS=str(alias))


def record(path, make_net, make_input):
    torch.manual_seed(1)
    net, x = make_net(), make_input()
    labels = torch.randint(10, (x.shape[1] if isinstance(net, nets.Unrolled) else x.shape[0],))
    with open(path, "w") as file, Recorder(file) as recorder:
        recorder.line("ANNOTATE", ANNOTATION="START")
        loss = torch.nn.functional.cross_entropy(net(x), labels)
        recorder.line("ANNOTATE", ANNOTATION="BACKWARD")
        loss.backward()
        del loss
        recorder.sweep()


def main():
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for name, (make_net, make_input) in {**nets.TUNING, **nets.HELD, **nets.HELD_LATER, **nets.HELD_RECURRENT, **nets.HELD_VIEWS, **nets.HELD_NESTED, **nets.SMALL}.items():
        if len(sys.argv) < 3 or name in sys.argv[2:]:
            record(folder / f"{name}.log", make_net, make_input)
            print(name, flush=True)


if __name__ == "__main__":
    main()
