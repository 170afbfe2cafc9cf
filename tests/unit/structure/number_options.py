#!/usr/bin/env python3
"""Options of a floating type are checked by number_between(): CLI::Range lets NaN pass."""
import pathlib
import re
import sys

FOLDERS = ("coordinator", "daemon", "swap", "tools")
RANGE = re.compile(r"CLI::Range\(([^)]*)\)")
FLOATING = re.compile(r"\d\.|\.\d|\de[-\d]|double")
ADDED = re.compile(r"add_option\(\s*\"[^\"]*\",\s*([\w.>-]+)")
DECLARED = re.compile(r"^\s*(?:std::vector<|std::optional<)?double>? ([^;(]*);", re.M)
NAME = re.compile(r"(\w+)(?: = [^,]*)?(?:,|$)")


def doubles_of(texts):
    """Names of members and variables, by file."""
    return {path: {name for found in DECLARED.findall(text) for name in NAME.findall(found)} for path, text in texts.items()}


def other_type(name):
    """Of a member of that name in the file itself."""
    return re.compile(rf"^\s*(?:u?int\d*_t|int|unsigned|size_t|bool|std::string) [^;(]*\b{name}\b", re.M)


def is_header_of(header, path):
    return header.suffix == ".h" and header.parent == path.parent


def statement_from(text, at):
    """Up to its semicolon."""
    return text[at : text.index(";\n", at)]


def main(root):
    texts = {path: path.read_text() for folder in FOLDERS for path in sorted((root / folder).rglob("*.[ch]*"))}
    doubles = doubles_of(texts)
    wrong, checked = [], 0
    for path, text in texts.items():
        at = path.relative_to(root)
        wrong += [f"{at}: {found[0]}" for found in RANGE.finditer(text) if FLOATING.search(found[1])]
        checked += text.count("number_between(")
        near = set().union(*(doubles[other] for other in texts if other == path or is_header_of(other, path)))
        for added in ADDED.finditer(text):
            name = re.split(r"\.|->", added[1])[-1]
            if name in near and not other_type(name).search(text) and "number_between" not in statement_from(text, added.start()):
                wrong.append(f"{at}: {added[0]} of a double")
    for line in wrong:
        print(f"{line}: check it by number_between(), tools/output/arguments.h")
    if checked < 20:
        sys.exit(f"only {checked} options are checked: the patterns no longer fit the code")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1])))
