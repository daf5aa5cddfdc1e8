"""Who may include what: ARCHITECTURE.md's table of folders, and one folder a third-party library.

A folder under src/ is a layer; so is a folder in it that NEEDS names (store/rocksdb). A header
under include/detent/ belongs to the layer whose CMakeLists.txt lists it as PUBLIC_HEADERS, so a
public header counts as an edge like any other. tests/, bench/ and examples/ may include every
layer.

A large layer has rooms, which are folders in it. The order of their rows in the second table says
who may include whom: a room includes the rooms above it. Files of the layer that are in no room
are a row as well, or else come last.
"""

import collections
import pathlib
import re

from tidy_rules.source import TEST_ROOM, Finding, is_test_path

RULES = {
    "layering": "a folder includes only what ARCHITECTURE.md's table says it needs",
    "rooms": "a room includes only rooms above it in ARCHITECTURE.md's table of rooms; a folder "
             "has at most 45 files",
    "third-party": "a library's headers are included from one folder only",
    "public-header": "a header under include/ is installed with the layer that owns it",
}

TABLE = pathlib.Path(__file__).resolve().parents[2] / "ARCHITECTURE.md"
# A row of it: floor, folder, what it is, what it needs.
ROW = re.compile(r"^\| (\d) \| `src/([\w/]+)/` \|.*\| ?([^|\n]*?) ?\|$", re.MULTILINE)


ROOM = re.compile(r"^\| `src/([\w/]+)/` \| [^|\n]* \|$", re.MULTILINE)


def read_table(text):
    """Layer → the layers it may include, besides itself and those that are open to all above. The
    table is in ARCHITECTURE.md, and nowhere else."""
    rows = {folder: (int(floor), needs) for floor, folder, needs in ROW.findall(text)}
    needs = {folder: named_in(text_of_needs, set(rows) - {folder})
             for folder, (_, text_of_needs) in rows.items()}
    for folder, lower in needs.items():
        for other in lower:
            is_lower = rows[other][0] < rows[folder][0] or folder.startswith(other + "/")
            assert is_lower, f"{TABLE.name}: {folder} is on no higher floor than {other}"
    return needs


def named_in(text, all_others):
    """`store, task`, or `all but c, durable`; what is no layer is a mistake."""
    if text.startswith("all but "):
        return all_others - named_in(text.removeprefix("all but "), all_others)
    names = set(filter(None, text.split(", ")))
    assert names <= all_others, f"{TABLE.name} names what is no folder: {names - all_others}"
    return names


def read_rooms(text, layers):
    """Layer → its rooms, the lowest first. "" is the files that are in the layer and in no room."""
    rooms = {}
    for folder in ROOM.findall(text):
        layer, room = (folder, "") if folder in layers else folder.rsplit("/", 1)
        assert layer in layers, f"{TABLE.name}: src/{folder}/ is a room of no folder"
        rooms.setdefault(layer, []).append(room)
    return {layer: found if "" in found else found + [""] for layer, found in rooms.items()}


NEEDS = read_table(TABLE.read_text(encoding="utf-8"))
ROOMS = read_rooms(TABLE.read_text(encoding="utf-8"), NEEDS)
# Of the server one file chooses a concrete store; all others know the interface.
STORE_CHOICE = "src/server/program/open_engine.cc"
CONCRETE_STORES = {"store/rocksdb", "store/postgres"}
GROUND = {"wheel", "base"}  # the lowest floor, which does not see itself
OPEN_TO_ALL = {"wheel", "base", "base/log"}
FLOOR_0 = {"detent/check.h", "detent/tick.h"}  # below every layer

FOLDER_FILES = 45

# Third-party headers, by how their names begin → where they may be included. The longest wins.
THIRD_PARTY = {
    "stdint.h": ("include/detent/detent.h",),  # which C programs include
    "tl/": ("src/base/result.h",),
    "spdlog/": ("src/base/log/",),
    "fmt/": tuple(f"src/{layer}/" for layer in NEEDS if layer not in GROUND),
    "rocksdb/": ("src/store/rocksdb/", "tests/durability/"),
    "libpq-fe.h": ("src/store/postgres/",),
    "hiredis/": ("src/redis/",),
    "librdkafka/": ("src/sinks/", "tests/sinks/"),
    "nats/": ("src/sinks/", "tests/sinks/"),
    "boost/asio": ("src/net/", "include/detent/asio.h", "src/runtime/coroutines/asio_test.cc"),
    "boost/beast": ("src/net/",),
    "boost/system": ("src/net/", "include/detent/asio.h", "src/runtime/coroutines/asio_test.cc"),
    "boost/json": ("src/protocol/json/", "src/server/http/openapi_test.cc",
                   "src/tracing/otlp_json_test.cc", "tests/fuzz/"),
    "openssl/": ("src/net/", "src/client/verify_webhook.cc", "src/delivery/webhook_signature.cc",
                 "src/server/access/access_token.cc", "src/server/http/list_cursor.cc"),
    "prometheus/": ("src/server/",),
    "CLI/": ("src/cli/",),
    "toml++/": ("src/cli/settings/toml_parser.h",),
    "date/": ("src/calendar/",),
    "sanitizer/": ("src/store/rocksdb/database/open_db_test.cc",),
    "gtest/": (),
    "gmock/": (),
    "benchmark/": (),
}
# The one header of the wheels that does not do with the standard library, nor need the system's.
ASKS_THE_KERNEL = "include/detent/internal/flat_array.h"
TEST_LIBRARIES = ("gtest/", "gmock/", "benchmark/")
SYSTEM_HEADER = re.compile(r"""
    (?:sys|linux|netinet|arpa|net)/[\w/]+\.h
  | (?:unistd|fcntl|stdlib|time|termios|signal|pthread|sched|poll|netdb|cxxabi|grp|pwd)\.h
  | \w+intrin\.h
""", re.VERBOSE)
STANDARD_HEADER = re.compile(r"[a-z_]+")
LISTED_HEADER = re.compile(r"\bdetent/[\w/]+\.h\b")


def check(tree):
    owners = public_header_owners(tree)
    for file in tree.cpp_files:
        if file.is_under("bench", "examples"):
            continue  # the peers' libraries beside ours; programs of users with theirs
        for include in file.includes:
            if include.is_quoted:
                yield from check_edge(file, include, owners)
            else:
                yield from check_third_party(file, include)
    yield from check_rooms(tree)
    yield from check_beast(tree)
    yield from check_installed(tree, owners)


def public_header_owners(tree):
    """Public header (as it is included) → layer, read from the layers' CMakeLists.txt."""
    owners = {}
    for file in tree.files:
        if file.is_cmake and file.is_under("src"):
            for block in re.finditer(r"PUBLIC_HEADERS\s+((?:[\w./]+\s*)+)", file.text):
                for header in LISTED_HEADER.findall(block[1]):
                    owners[header] = layer_of(file.path)
    return owners


def layer_of(path):
    """The layer a file under src/ belongs to, the most specific one; None elsewhere."""
    if not path.startswith("src/"):
        return None
    folders = path.split("/")[1:-1]
    for depth in range(len(folders), 0, -1):
        if "/".join(folders[:depth]) in NEEDS:
            return "/".join(folders[:depth])
    return folders[0] if folders else None


def check_edge(file, include, owners):
    """An include of ours: "x/y.h" from another layer, "detent/y.h" from the layer that owns it."""
    if file.is_under("tests"):
        return
    problem = edge_problem(file, include.header, owners)
    if problem:
        yield finding(file, include, problem)
    problem = None if file.is_test else room_problem(file.path, "src/" + include.header)
    if problem:
        yield finding(file, include, problem, "rooms")


def room_problem(source, target):
    """What is wrong when `source` includes `target`, a file of the same layer."""
    layer = layer_of(source)
    if layer is None or layer != layer_of(target) or is_test_path(target):
        return None
    order = ROOMS.get(layer, [""])
    rooms = [room_of(path, layer) for path in (source, target)]
    if not set(rooms) <= set(order) or order.index(rooms[1]) <= order.index(rooms[0]):
        return None
    return (f"{source} may not include {target}: its room is below in {TABLE.name}'s table of "
            "rooms")


def room_of(path, layer):
    """The folder in the layer, or "" for a file that is in no room."""
    return path.removeprefix(f"src/{layer}/").rpartition("/")[0]


def check_rooms(tree):
    """Every folder in a layer is in the table, and no folder of C++ has too many files."""
    sizes = collections.Counter(str(pathlib.PurePath(file.path).parent) for file in tree.cpp_files)
    for folder, size in sizes.items():
        if size > FOLDER_FILES:
            yield Finding(folder, 1, "rooms", f"{size} files of C++, {FOLDER_FILES} are allowed; "
                          "give the folder rooms that show its design")
    for file in tree.cpp_files:
        layer = layer_of(file.path)
        if layer not in NEEDS:
            continue
        room = room_of(file.path, layer)
        if room not in ("", TEST_ROOM, *ROOMS.get(layer, [])):
            yield Finding(file.path, 1, "rooms", f"src/{layer}/{room}/ is not in the table of "
                          f"rooms in {TABLE.name}; add it there")


def edge_problem(file, header, owners):
    """What is wrong with `file` including our `header`; None when nothing is."""
    is_public = header.startswith("detent/")
    if file.is_under("include") and not is_public:
        return (f'"{header}" is not installed; a public header may include detent/ and the '
                "standard library")
    if header in FLOOR_0:
        return None
    if public_name(file) in FLOOR_0:
        return f"{public_name(file)} is floor 0: standard library only"
    is_for_tests = header.startswith("tests/") or is_test_path(header)
    if is_for_tests and not file.is_test:
        return f'"{header}" is for tests only'
    if header.startswith("tests/"):
        return None
    source = layer_of(file.path) if file.is_under("src") else owners.get(public_name(file))
    target = owners.get(header) if is_public else layer_of("src/" + header)
    if source not in NEEDS:
        return None if source is None else (
            f"src/{source} is not in the table of ARCHITECTURE.md; add it there")
    if source == "server" and target in CONCRETE_STORES and file.path != STORE_CHOICE:
        return f'of src/server only {STORE_CHOICE} may name a concrete store'
    if target is None or may_include(source, target, file.is_test):
        return None
    return f'src/{source} may not include "{header}" (of src/{target}); {allowed_text(source)}'


def may_include(source, target, is_test):
    if source == target or target in NEEDS[source]:
        return True
    if source in GROUND and not is_test:  # the wheel's tests use base's Rng
        return source == "base" and target == "base/log"
    return target in OPEN_TO_ALL


def allowed_text(source):
    if source in GROUND:
        return "it is on the lowest floor: itself, detent/check.h and detent/tick.h"
    return "it needs: " + ", ".join(sorted(NEEDS[source] | OPEN_TO_ALL))


def public_name(file):
    return file.path[len("include/"):] if file.is_under("include") else None


def finding(file, include, message, rule="layering"):
    return Finding(file.path, include.line, rule, message)


def check_third_party(file, include):
    """An include in angle brackets: standard, the system's, or a library with its one folder."""
    header = include.header
    if STANDARD_HEADER.fullmatch(header):
        return
    if SYSTEM_HEADER.fullmatch(header):
        if file.is_under("include", "src/wheel") and file.path != ASKS_THE_KERNEL:
            yield finding(file, include, f"<{header}> is the system's; here the standard library "
                          f"only, but for {ASKS_THE_KERNEL}", "third-party")
        return
    if header.startswith(TEST_LIBRARIES) and file.is_test:
        return
    prefix = max((key for key in THIRD_PARTY if header.startswith(key)), key=len, default=None)
    if prefix is None:
        yield finding(file, include, f"<{header}> is of no library in the table; give it a folder "
                      "in THIRD_PARTY, tools/tidy_rules/layering.py", "third-party")
    elif not file.path.startswith(THIRD_PARTY[prefix]):
        places = ", ".join(THIRD_PARTY[prefix]) or "tests and bench/"
        yield finding(file, include, f"<{header}> may be included from {places} only",
                      "third-party")


def check_beast(tree):
    """Beast takes 20 s a translation unit, so one .cc has it and no header."""
    users = [(file, include) for file in tree.cpp_files if file.is_under("src/net")
             for include in file.includes if include.header.startswith("boost/beast")]
    sources = sorted({file.path for file, _ in users if file.suffix == ".cc"})
    for file, include in users:
        if file.suffix == ".h" or file.path != sources[0]:
            yield finding(file, include, "Beast is included by one .cc of src/net and by no header"
                          f" ({sources[0] if sources else 'none has it'})", "third-party")


def check_installed(tree, owners):
    """A public header that no layer lists is not installed, and nothing checks it alone."""
    for file in tree.cpp_files:
        if file.is_under("include") and public_name(file) not in owners:
            yield Finding(file.path, 1, "public-header", "no layer lists this header as "
                          "PUBLIC_HEADERS in its CMakeLists.txt, so it is not installed")
