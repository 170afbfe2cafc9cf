#!/usr/bin/env python3
"""Every test belongs to a suite that tools/check runs: of another one nobody would hear that it fails."""
import pathlib
import re
import sys

LISTED = re.compile(r"^(?:suites|guests)=\(([\w ]+)\)|\|\| guests\+?=\(([\w -]+)\)", re.MULTILINE)
SUITE = re.compile(r"suite: (?:\w+ in \w+ \? '([\w-]+)' : )?'([\w-]+)'")


def main(root):
    listed = set(" ".join(a or b for a, b in LISTED.findall((root / "tools/check").read_text())).split())
    used = {}
    for file in sorted((root / "tests").rglob("meson.build")):
        for found in SUITE.findall(file.read_text()):
            for suite in filter(None, found):
                used.setdefault(suite, file.relative_to(root))
    wrong = [f"{file}: tools/check runs no suite '{suite}'" for suite, file in used.items() if suite not in listed]
    print(*wrong, sep="\n")
    if len(used) < 6:
        sys.exit(f"only the suites {sorted(used)} were found: the pattern no longer fits")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1])))
