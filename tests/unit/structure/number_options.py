#!/usr/bin/env python3
"""Options of a floating type are checked by number_between(): CLI::Range lets NaN pass. Those of 64 bits without a
sign by some check: CLI11 takes -1 for the greatest number."""
import pathlib
import re
import sys

FOLDERS = ("coordinator", "daemon", "swap", "tools")
RANGE = re.compile(r"CLI::Range\(([^)]*)\)")
FLOATING = re.compile(r"\d\.|\.\d|\de[-\d]|double")
ADDED = re.compile(r"add_option\(\s*\"[^\"]*\",\s*([\w.>-]+)")
DECLARED = re.compile(r"^\s*(?:std::vector<|std::optional<)?(u?int\d*_t|int|unsigned|size_t|bool|double|std::string)>? ([^;(]*);", re.M)
CHECKS = {
    "double": ("number_between(", "number_between()"),
    "uint64_t": ("->check(", "whole_number() or id_number()"),
    "size_t": ("->check(", "whole_number() or id_number()"),
}
NAME = re.compile(r"(\w+)(?: = [^,]*)?(?:,|$)")


def types_of(text):
    """Of members and variables, by name: one that has two is of none."""
    types = {}
    for kind, names in DECLARED.findall(text):
        for name in NAME.findall(names):
            types[name] = kind if types.get(name, kind) == kind else ""
    return types


def is_header_of(header, path):
    return header.suffix == ".h" and header.parent == path.parent


def statement_from(text, at):
    """Up to its semicolon."""
    return text[at : text.index(";\n", at)]


def main(root):
    texts = {path: path.read_text() for folder in FOLDERS for path in sorted((root / folder).rglob("*.[ch]*"))}
    types = {path: types_of(text) for path, text in texts.items()}
    wrong, checked = [], 0
    for path, text in texts.items():
        at = path.relative_to(root)
        wrong += [f"{at}: {found[0]}: number_between()" for found in RANGE.finditer(text) if FLOATING.search(found[1])]
        checked += text.count("number_between(")
        near = {}
        for other in [header for header in texts if is_header_of(header, path)] + [path]:
            near.update(types[other])
        for added in ADDED.finditer(text):
            wanted, how = CHECKS.get(near.get(re.split(r"\.|->", added[1])[-1]), ("", ""))
            if wanted not in statement_from(text, added.start()):
                wrong.append(f"{at}: {added[0]}: {how}")
    for line in wrong:
        print(f"{line} is to check it, tools/output/arguments.h")
    if checked < 20:
        sys.exit(f"only {checked} options are checked: the patterns no longer fit the code")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1])))
