#!/usr/bin/env python3
"""Every include keeps to the table "What may include what" in docs/reference/layout.md."""
import pathlib
import re
import sys

INCLUDE = re.compile(r'^#include "([^"]+/[^"/]+)"', re.MULTILINE)
ROOMS = ("base", "bpf", "job", "model", "rpc", "policies", "swap", "daemon", "coordinator", "tools")


def rules(document):
    text = document.read_text()
    table = text[text.index("What may include what"):].split("\n\n", 2)[1]
    found = {}
    for row in table.splitlines()[2:]:
        folders, allowed = row.strip("|").split("|")
        for folder in re.findall(r"`([\w/]+)`", folders):
            found[folder] = re.findall(r"`([\w/.]+)`", allowed)
    return found


def within(path, of):
    return path == of or path.startswith(of + "/")


def row_of(folder, table):
    return max((name for name in table if within(folder, name)), key=len, default=None)


def main(root):
    table = rules(root / "docs/reference/layout.md")
    wrong, seen = [], 0
    for room in ROOMS:
        for source in sorted((root / room).rglob("*")):
            if source.suffix not in (".h", ".cc", ".c"):
                continue
            row = row_of(source.relative_to(root).parent.as_posix(), table)
            for target in INCLUDE.findall(source.read_text()):
                if not (root / target).parent.is_dir():
                    continue  # generated, or of a library
                seen += 1
                if row is None or not any(within(target, name) for name in (row, *table[row])):
                    wrong.append(f"{source.relative_to(root)} includes {target}: not in the row of {row}")
    print(*wrong, sep="\n")
    if seen < 500:
        sys.exit(f"only {seen} includes found: the pattern no longer fits the code")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1])))
