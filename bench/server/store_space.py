#!/usr/bin/env python3
"""store_space.py FOLDER [--tasks 1m] [--sst-dump PROGRAM]: the parts of a task's disk space.

Prints the size of a data folder in bytes per task: by column family, and in its tables by data,
index, filter and the rest; also logs and other files. The folder can come from by_key_bench or from
a server at rest. Needs sst_dump (Debian: rocksdb-tools).
"""

import argparse
import collections
import pathlib
import re
import subprocess

PARTS = {"data": "data block size", "index": "index block size", "filter": "filter block size"}


def table_parts(sst_dump, file):
    """The column family of a table, and the bytes of its parts; None if the file has vanished."""
    text = subprocess.run([sst_dump, f"--file={file}", "--command=none", "--show_properties"],
                          capture_output=True, text=True, check=False).stdout
    family = re.search(r"column family name: (\S+)", text)
    if not family or not file.exists():
        return None
    parts = {part: int(re.search(rf"{name}.*?: (\d+)", text)[1]) for part, name in PARTS.items()}
    parts["rest"] = file.stat().st_size - sum(parts.values())
    parts["tables"] = 1
    parts["entries"] = int(re.search(r"# entries: (\d+)", text)[1])
    return family[1], parts


def show(folder, tasks, sst_dump):
    families = collections.defaultdict(collections.Counter)
    others = collections.Counter()
    for file in sorted(folder.rglob("*")):
        if file.suffix == ".sst":
            found = table_parts(sst_dump, file)
            if found:
                families[found[0]].update(found[1])
        elif file.is_file():
            status = file.stat()
            kind = "log" if file.suffix == ".log" else "other files"
            others[kind] += min(status.st_size, status.st_blocks * 512)
    print(f"{'bytes a task':14}{'data':>8}{'index':>8}{'filter':>8}{'rest':>8}{'all':>8}"
          f"{'tables':>8}{'entries':>10}")
    whole = sum(others.values())
    for name, parts in sorted(families.items()):
        size = sum(parts[part] for part in (*PARTS, "rest"))
        whole += size
        print(f"{name:14}" + "".join(f"{parts[part] / tasks:8.2f}" for part in (*PARTS, "rest"))
              + f"{size / tasks:8.2f}{parts['tables']:8}{parts['entries']:10}")
    for kind, size in others.items():
        print(f"{kind:14}{'':32}{size / tasks:8.2f}")
    print(f"{'all':14}{'':32}{whole / tasks:8.2f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--tasks", default="1m")
    parser.add_argument("--sst-dump", default="sst_dump")
    arguments = parser.parse_args()
    tasks = float(arguments.tasks.rstrip("km")) * {"k": 1e3, "m": 1e6}.get(arguments.tasks[-1], 1)
    show(arguments.folder, tasks, arguments.sst_dump)


if __name__ == "__main__":
    main()
