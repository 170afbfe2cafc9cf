#!/usr/bin/env python3
"""No two headers define a type of the same name in the same namespace.

Nothing else notices: programs link, and the destructor of one runs on the other.
"""
import collections
import pathlib
import re
import sys

FOLDERS = ("base", "bpf", "model", "rpc", "policies", "swap", "job", "daemon", "coordinator", "tools",
           "tests")
# clang-format indents nothing at namespace level and names every closing brace.
OPENED = re.compile(r"^(?:inline )?namespace ([\w:]+) \{")
CLOSED = re.compile(r"^\}  // namespace( [\w:]+)?")
DEFINED = re.compile(r"^(?:class|struct|union|enum(?: class)?) (?:\[\[\w+\]\] )?(\w+)(?: final)?(?: : [^;]*)? \{")


def definitions(header):
    namespaces = []
    for line in header.read_text().splitlines():
        if opened := OPENED.match(line):
            namespaces.append(opened[1])
        elif CLOSED.match(line) and namespaces:
            namespaces.pop()
        elif defined := DEFINED.match(line):
            yield "::".join([*namespaces, defined[1]])


def main(root):
    places = collections.defaultdict(list)
    for folder in FOLDERS:
        for header in sorted((root / folder).rglob("*.h")):
            for name in set(definitions(header)):
                places[name].append(str(header.relative_to(root)))
    twice = {name: where for name, where in places.items() if len(where) > 1}
    for name, where in sorted(twice.items()):
        print(f"{name} is defined in {' and in '.join(where)}: rename one")
    if len(places) < 100:
        sys.exit(f"only {len(places)} types found: the patterns no longer fit the code")
    return 1 if twice else 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1])))
