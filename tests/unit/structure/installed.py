#!/usr/bin/env python3
"""What is to be installed is: every module of Python and every page of the documentation is named where meson installs them."""
import pathlib
import sys

root = pathlib.Path(sys.argv[1])
wrong = []
for folder, pattern in (("python", "**/*.py"), ("docs", "**/*.md")):
    named = (root / folder / "meson.build").read_text(encoding="utf-8")
    for path in sorted((root / folder).glob(pattern)):
        name = path.relative_to(root / folder).as_posix()
        if f"'{name}'" not in named:
            wrong.append(f"{folder}/meson.build does not install {name}")
print("\n".join(wrong))
sys.exit(1 if wrong else 0)
