"""The shape of files and functions: sizes, heads, and the order a reader relies on; and that git
keeps no file that a program makes."""

import ast
import pathlib
import re

from tidy_rules.source import Finding, SourceFile

RULES = {
    "file-size": "500 lines is a warning; 800 needs a head comment that says 'Long because'",
    "function-size": "a function has at most 70 lines",
    "file-head": "a file begins with a comment that says what it is; x.cc may leave that to x.h",
    "pragma-once": "a header has #pragma once",
    "own-header-first": "a .cc includes its own header before anything else",
    "line-length": "a line has at most 100 characters",
    "kept": "git keeps what people write: nothing that Python compiles, no file over 512 KiB",
    "reason": "a catch (...) and a discarded result have their reason beside them",
    "listed": "a .cc is named in the CMakeLists.txt of its folder or of one above",
}

WARNED_LINES, ALLOWED_LINES = 500, 800
FUNCTION_LINES = 70
LINE_LENGTH = 100
KEPT_BYTES = 512 * 1024
LONG_NOTE = "Long because"

# What stands before a `{`, when it opens something that is not a function.
NOT_A_FUNCTION = re.compile(r"^\s*(?:inline\s+)?namespace\b|^\s*extern\s*$")
A_TYPE = re.compile(r"^\s*(?:template\s*<.*>\s*)?(?:requires\b.*\s)?(?:typedef\s+)?"
                    r"(?:class|struct|union|enum)\b", re.DOTALL)
WITHOUT_REASON = re.compile(r"\bcatch \(\.\.\.\)|\(void\)\s*[\w:]+")
A_CONCEPT = re.compile(r"\bconcept\s+\w+\s*=")


def check(tree):
    yield from check_kept(tree)
    for file in tree.files:
        if file.is_cpp or file.is_python or file.is_shell:
            yield from check_head(tree, file)
            yield from check_file_size(file)
        if file.is_cpp or file.is_python or file.is_shell or file.is_cmake:
            yield from check_line_length(file)
        if file.is_cpp:
            yield from check_function_sizes(file, cpp_functions(file.code))
            yield from check_pragma_once(file)
            yield from check_own_header(tree, file)
            yield from check_listed(tree, file)
            yield from check_reasons(file)
        elif file.is_python:
            yield from check_function_sizes(file, python_functions(file.text))


def check_kept(tree):
    for path in tree.kept:
        if path.endswith((".pyc", ".pyo")) or "__pycache__" in path.split("/"):
            yield Finding(path, 1, "kept", "Python makes this anew; git rm --cached it")
        elif tree.size_of(path) > KEPT_BYTES:
            yield Finding(path, 1, "kept", f"has {tree.size_of(path)} bytes, {KEPT_BYTES} are "
                          "allowed; what a run leaves is not kept: git rm --cached it")


def head_of(file):
    """The lines of the comment a file begins with, after a #! line; empty when there is none."""
    lines = file.lines[1:] if file.lines and file.lines[0].startswith("#!") else file.lines
    if file.is_python and lines and lines[0].startswith('"""'):
        end = next((i for i, line in enumerate(lines) if line.endswith('"""') and line != '"""'
                    or i > 0 and '"""' in line), 0)
        return lines[:end + 1]
    mark = "//" if file.is_cpp else "#"
    head = []
    for line in lines:
        if not line.startswith(mark):
            break
        head.append(line)
    return head


def check_head(tree, file):
    subject = SourceFile(file.path.replace("_test.cc", ".cc"), "")
    if own_headers(tree, subject):
        return  # the header's head is the head of its source and its test
    if file.lines and not any(re.search(r"\w", line) for line in head_of(file)):
        yield Finding(file.path, 1, "file-head", "no comment at the top; say in 3 to 15 lines what "
                      "this is, the idea behind it, and where to read next")


def check_file_size(file):
    count = len(file.lines)
    if count <= WARNED_LINES or any(LONG_NOTE in line for line in head_of(file)):
        return
    if count <= ALLOWED_LINES:
        yield Finding(file.path, count, "file-size", f"{count} lines; past {WARNED_LINES} ask what "
                      "second thing moved in", is_warning=True)
    else:
        yield Finding(file.path, count, "file-size", f"{count} lines, {ALLOWED_LINES} are allowed; "
                      f"split it, or say '{LONG_NOTE} …' in the head comment")


def check_line_length(file):
    for number, line in enumerate(file.lines, start=1):
        if len(line) > LINE_LENGTH and "://" not in line:
            yield Finding(file.path, number, "line-length",
                          f"{len(line)} characters, {LINE_LENGTH} are allowed")


def check_pragma_once(file):
    if file.suffix == ".h" and not re.search(r"^#pragma once$", file.code, re.MULTILINE):
        yield Finding(file.path, 1, "pragma-once", "a header without #pragma once")


def check_own_header(tree, file):
    own = own_headers(tree, file)
    first = next(iter(file.includes), None)
    if own and first and first.header not in own:
        yield Finding(file.path, first.line, "own-header-first", f'"{first.header}" comes first; '
                      f'a .cc begins with its own header, "{own[0]}"')


def check_listed(tree, file):
    """A test that is in no list is never compiled, and all the others pass."""
    path = pathlib.PurePosixPath(file.path)
    places = [(folder / "CMakeLists.txt").as_posix() for folder in path.parents]
    lists = [tree.file(place).text for place in places if tree.has(place)]
    if file.suffix != ".cc" or not any(".cc" in text for text in lists):
        return  # there are no lists of files here
    name = re.compile(rf"(?<![\w.-]){re.escape(path.stem)}(?:\.cc)?(?![\w.-])")
    if not any(name.search(text) for text in lists):
        yield Finding(file.path, 1, "listed", f"no CMakeLists.txt names {path.name}, so it is not "
                      f"compiled; {path.parent}/CMakeLists.txt is the place")


def check_reasons(file):
    """The comment is on the line itself, the line above, or the one below."""
    if not file.is_under("include", "src") or file.is_test:
        return
    for number, line in enumerate(file.code_lines, start=1):
        if not WITHOUT_REASON.search(line):
            continue
        if not any("//" in near for near in file.lines[max(number - 2, 0):number + 1]):
            yield Finding(file.path, number, "reason", "say beside it why what is thrown, or the "
                          "result, does not matter here")


def own_headers(tree, file):
    """The x.h of an x.cc, as it is included: beside it or under include/; empty without one."""
    if file.suffix != ".cc":
        return []
    beside = file.path[:-len("cc")] + "h"
    own = [beside.removeprefix("src/")] if tree.has(beside) else []
    if own and not file.is_under("src"):
        own.insert(0, file.name[:-len("cc")] + "h")  # programs of their own, as examples/ has
    return own + [header.path.removeprefix("include/")
                  for header in tree.public_headers.get(file.name[:-len("cc")] + "h", ())]


def check_function_sizes(file, functions):
    for name, start, end in functions:
        if end - start + 1 > FUNCTION_LINES:
            yield Finding(file.path, start, "function-size", f"{name} has {end - start + 1} lines, "
                          f"{FUNCTION_LINES} are allowed; keep the branching, move the rest out")


def python_functions(text):
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield node.name, node.lineno, node.end_lineno


def cpp_functions(code):
    """(name, first line, last line) of each function body in `code`, which has no comments.

    Matches braces at namespace and class scope. What stands between the last `;` or brace and a
    `{` tells what opens: a namespace, a type, data, or a function. A `{` of a member initialiser is
    told from a body by what follows its `}`: the body's other initialisers or the body itself.
    """
    code = blank_preprocessor(code)
    position, head_start, functions = 0, 0, []
    while (match := re.compile(r"[;{}]").search(code, position)):
        position = match.end()
        head = code[head_start:match.start()]
        if match[0] != "{" or opens_scope(head):
            head_start = position
            continue
        position = end_of_block(code, match.start())
        if "(" not in head or A_CONCEPT.search(head) or head.rstrip().endswith("="):
            continue  # data: the `;` that follows ends its head
        following = code[position:].lstrip()[:1]
        if following in (",", "{") and re.search(r"\)[^;]*:", head):
            continue  # a member initialiser; the head goes on
        first = head_start + len(head) - len(head.lstrip())
        functions.append((name_of(head), line_of(code, first), line_of(code, position - 1)))
        head_start = position
    return functions


def opens_scope(head):
    head = re.sub(r"\b(?:public|private|protected)\s*:", " ", head)
    return bool(NOT_A_FUNCTION.search(head) or A_TYPE.search(head))


def end_of_block(code, start):
    """The position after the `}` that closes the `{` at `start`."""
    depth = 0
    for match in re.compile(r"[{}]").finditer(code, start):
        depth += 1 if match[0] == "{" else -1
        if depth == 0:
            return match.end()
    return len(code)


def name_of(head):
    name = re.search(r"([\w:~]+|operator\S+)\s*\(", head)
    return name[1] if name else "a function"


def line_of(code, position):
    return code.count("\n", 0, position) + 1


def blank_preprocessor(code):
    """Preprocessor lines, their continuations included, hold braces that need not match."""
    return re.sub(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", lambda match: re.sub(r"[^\n]", " ", match[0]),
                  code, flags=re.MULTILINE)
