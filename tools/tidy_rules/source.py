"""What the rules look at: a tree of source files, and C++ text without comments and literals."""

import collections
import dataclasses
import functools
import pathlib
import re
import subprocess

SKIPPED_FOLDERS = {".git", "build", "data", "node_modules", "__pycache__"}
CPP_SUFFIXES = {".h", ".cc"}
OTHER_SUFFIXES = {".py", ".sh", ".cmake", ".in", ".txt", ".md", ".json", ".jsonl", ".toml", ".yaml",
                  ".js", ".mjs", ".ts", ".go", ".css", ".html", ".service", ".1"}
NAMES = {".clang-tidy", ".clang-format", ".gitignore"}

# Tests, and the headers that only tests include. So is every file in a folder TEST_ROOM.
TEST_ROOM = "testing"
TEST_FILE = re.compile(r"\w+_test\.cc|\w+_(?:fixture|model|rig)\.h|(?:\w+_)?test_\w+\.h")

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
ALLOWANCE = r"\s*tidy-ok\(([\w-]+)\):?\s*(.*)"

# Comments, raw strings, strings and characters. A quote between digits (1'000) starts nothing.
LITERAL = re.compile(
    r"""//[^\n]*(?:\\\n[^\n]*)*
      | /\*.*?\*/
      | R"(?P<delimiter>[^(\s]{0,16})\(.*?\)(?P=delimiter)"
      | "(?:[^"\\\n]|\\.)*"
      | (?<![0-9a-fA-F])'(?:[^'\\\n]|\\.)*'
    """, re.VERBOSE | re.DOTALL)


def is_test_path(path):
    """Whether a file under src/, or a header as it is included, is for tests only."""
    *folders, name = path.split("/")
    return TEST_ROOM in folders or bool(TEST_FILE.fullmatch(name))


@dataclasses.dataclass(frozen=True)
class Finding:
    """A place that breaks a rule. `path` is relative to the tree's root."""

    path: str
    line: int
    rule: str
    message: str
    is_warning: bool = False

    def __str__(self):
        return f"{self.path}:{self.line}: {self.rule}: {self.message}"


@dataclasses.dataclass
class Allowance:
    """A `tidy-ok(rule): reason` comment."""

    line: int
    rule: str
    reason: str
    used: bool = False


@dataclasses.dataclass(frozen=True)
class Include:
    line: int
    header: str
    is_quoted: bool


class SourceFile:
    """One file: its path relative to the root (with /), its text and what can be read off it."""

    def __init__(self, path, text):
        self.path = path
        self.text = text
        self.lines = text.splitlines()
        self.name = path.rsplit("/", 1)[-1]
        self.suffix = pathlib.PurePosixPath(path).suffix
        self.allowances = [] if self.suffix == ".md" else list(self._read_allowances())

    def _read_allowances(self):
        mark = "//" if self.is_cpp else "#"
        for number, line in enumerate(self.lines, start=1):
            match = re.search(mark + ALLOWANCE, line)
            if match:
                yield Allowance(number, match[1], match[2].strip())

    @property
    def is_cpp(self):
        return self.suffix in CPP_SUFFIXES

    @property
    def is_python(self):
        return self.suffix == ".py" or self._shebang_has("python")

    @property
    def is_shell(self):
        return self.suffix == ".sh" or self._shebang_has("sh") and not self.is_python

    @property
    def is_cmake(self):
        return self.suffix == ".cmake" or self.name == "CMakeLists.txt"

    @property
    def is_test(self):
        """A test or what tests share, beside the source, in testing/ or anywhere in tests/."""
        return self.is_under("tests") or is_test_path(self.path)

    def _shebang_has(self, word):
        return bool(self.lines) and self.lines[0].startswith("#!") and word in self.lines[0]

    def is_under(self, *folders):
        return any(self.path.startswith(folder + "/") for folder in folders)

    def allows(self, line, rule):
        """True when a comment on the line or the one before allows `rule`; notes its use."""
        for allowance in self.allowances:
            if allowance.rule == rule and allowance.reason and allowance.line in (line - 1, line):
                allowance.used = True
                return True
        return False

    @functools.cached_property
    def code(self):
        """The C++ text with comments and literals blanked; every line keeps its number."""
        return LITERAL.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), self.text)

    @functools.cached_property
    def code_lines(self):
        return self.code.splitlines()

    @functools.cached_property
    def includes(self):
        """The #include lines that are no comment, in order."""
        found = []
        for number, (line, code) in enumerate(zip(self.lines, self.code_lines), start=1):
            match = INCLUDE.match(line)
            if match and "include" in code:
                found.append(Include(number, match[2], match[1] == '"'))
        return found


class Tree:
    """The source files under a root, in order of their paths, and all that git keeps there."""

    def __init__(self, files, kept):
        self.files = sorted(files, key=lambda file: file.path)
        self._kept_sizes = kept
        self._by_path = {file.path: file for file in self.files}

    @classmethod
    def read(cls, root):
        root = pathlib.Path(root)
        return cls((SourceFile(path.relative_to(root).as_posix(), path.read_text(encoding="utf-8"))
                    for path in root.rglob("*") if is_source(path.relative_to(root), path)),
                   {path: size_of(root / path) for path in kept_by_git(root)})

    @property
    def kept(self):
        """The paths of all files that git keeps."""
        return list(self._kept_sizes)

    def size_of(self, path):
        """How many bytes one of `kept` has now; none when it is gone from the folder."""
        return self._kept_sizes[path]

    def file(self, path):
        """The one of a path; of one that is no source, without its text."""
        return self._by_path.get(path) or SourceFile(path, "")

    def has(self, path):
        return path in self._by_path

    @functools.cached_property
    def cpp_files(self):
        return [file for file in self.files if file.is_cpp]

    @functools.cached_property
    def public_headers(self):
        """The headers under include/, by their names without a folder."""
        by_name = collections.defaultdict(list)
        for file in self.cpp_files:
            if file.is_under("include"):
                by_name[file.name].append(file)
        return by_name


def kept_by_git(root):
    """The paths of the files that are in git's index; none where `root` is no repository of its
    own, as an unpacked archive."""
    if not (root / ".git").exists():
        return []
    words = ["git", "-c", "safe.directory=*", "-C", str(root), "ls-files", "-z"]
    listed = subprocess.run(words, capture_output=True, text=True, check=True)
    return listed.stdout.split("\0")[:-1]


def size_of(path):
    return path.stat().st_size if path.is_file() else 0


def is_source(relative, path):
    """Whether the rules look at a file at all: text that people write."""
    if SKIPPED_FOLDERS.intersection(relative.parts[:-1]) or not path.is_file():
        return False
    if path.suffix or path.name in NAMES:
        return path.suffix in CPP_SUFFIXES | OTHER_SUFFIXES or path.name in NAMES
    with path.open("rb") as file:
        return file.read(2) == b"#!"
