#!/usr/bin/env python3
"""Checks that the folders of src include one another in one direction only.

usage: include_direction.py SRC        names each offence as file:line and exits with 1 if there is any
       include_direction.py --self-test
"""

import pathlib
import re
import sys
import tempfile

# A folder may include itself and those before it.
ORDER = ["base", "data", "kernels", "nn", "optim", "world", "sync", "measure", "train", "lab", "report", "cli"]
# Headers that only one folder may include.
PRIVATE = {"dnnl": "kernels", "mpi.h": "world", "zmq": "world", "boost": "world", "sqlite3": "measure", "httplib": "report"}

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')


def offence(folder, quote, header):
    """Why a file in `folder` must not include `header`; None where it may."""
    for prefix, owner in PRIVATE.items():
        if folder != owner and any(part.startswith(prefix) for part in header.split("/")):
            return f"<{header}> is for src/{owner} only"
    if quote == "<":
        return None
    target, slash, _ = header.partition("/")
    if not slash or target not in ORDER:
        return f'"{header}" does not begin with a folder of src'
    if ORDER.index(target) > ORDER.index(folder):
        return f"src/{folder} must not know src/{target}, which comes after it"
    return None


def offences(src):
    found = []
    for folder in sorted(path for path in src.iterdir() if path.is_dir()):
        if folder.name not in ORDER:
            found.append(f"{folder}: not in the order of folders ({' <- '.join(ORDER)}); add it in {__file__}")
            continue
        for file in sorted(folder.rglob("*")):
            if file.suffix not in (".h", ".cc"):
                continue
            for number, line in enumerate(file.read_text().splitlines(), 1):
                include = INCLUDE.match(line)
                reason = include and offence(folder.name, *include.groups())
                if reason:
                    found.append(f"{file}:{number}: {reason}")
    return found


def self_test():
    cases = {
        "base/a.h": ('#include "nn/model.h"\n', 1),
        "nn/b.cc": ('#include <vector>\n#include "nn/b.h"\n#include "base/a.h"\n', 0),
        "nn/c.cc": ("  # include <dnnl.hpp>\n#include <oneapi/dnnl/dnnl.h>\n", 2),
        "kernels/deep/d.cc": ("#include <dnnl.hpp>\n#include <oneapi/dnnl/dnnl.h>\n", 0),
        "train/e.cc": ('#include "e.h"\n#include "cli/command.h"\n', 2),
        "strange/f.cc": ("", 1),
    }
    with tempfile.TemporaryDirectory() as name:
        src = pathlib.Path(name)
        for path, (text, _) in cases.items():
            (src / path).parent.mkdir(parents=True, exist_ok=True)
            (src / path).write_text(text)
        found = offences(src)
        for path, (_, expected) in cases.items():
            where = str(src / path) if expected == 0 or "strange" not in path else str(src / "strange")
            count = sum(one.startswith(where + ":") for one in found)
            if count != expected:
                sys.exit(f"{path}: {count} offences found, {expected} expected: {found}")
    print("ok")


def main():
    if sys.argv[1:] == ["--self-test"]:
        return self_test()
    if len(sys.argv) != 2 or not pathlib.Path(sys.argv[1]).is_dir():
        sys.exit(__doc__)
    found = offences(pathlib.Path(sys.argv[1]))
    if found:
        sys.exit("\n".join(found))
    print(f"{' <- '.join(ORDER)}: no include against the direction")


main()
