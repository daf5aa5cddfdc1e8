"""Many faults in one program: a file with all its mutants, of which DETENT_MUTANT chooses one.

A mutant (tools/mutate) is a line of code with a fault. Here it becomes an alternative of the
statement it is in: `if (detent_mutant(7)) fault; else statement;`, or within the condition of an
`if` or the initialiser of a variable, `detent_mutant(7) ? fault : code`. So hundreds of mutants
cost one compilation (mutant schemata: Untch, Offutt, Harrold, ISSTA 1993). The program notes which
mutants each test comes by, so that only these tests need be run for one.

What has no place in such a statement, or does not compile there, is left out.
"""

import bisect
import dataclasses
import re

LAMBDA_HEAD = re.compile(r"\[[^\[\]]*\]\s*$")
TRAILING = re.compile(r"(\s*(mutable|noexcept|const|->\s*[\w:<>&*,\s]+?))*\s*$")
LABEL = re.compile(r"\s*((case\b[^;{}]*?[^:]|default|public|private|protected):(?!:)\s*)")
HEAD = re.compile(r"\s*(else\s+)?(if|while|for|switch)\s*(?:constexpr\s*)?\(")
OF_A_TYPE = re.compile(r"\s*(template|namespace|class|struct|enum|union|extern)\b")
NO_STATEMENT = re.compile(r"\s*(template|using|typedef|static_assert|ASSIGN_OR_RETURN|friend)\b")

DECLARATION = "bool detent_mutant(int number) noexcept;"

# The other half: chooses the mutant, and tells which each test came by.
MAIN = r"""
#include <gtest/gtest.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>

namespace {

constexpr int kMost = 200'000;
std::atomic<bool> reached[kMost];

int chosen() {
  static const int number = [] {
    const char* text = std::getenv("DETENT_MUTANT");
    return text != nullptr ? std::atoi(text) : -1;
  }();
  return number;
}

class Reached final : public testing::EmptyTestEventListener {
 public:
  explicit Reached(const char* path) : file_(std::fopen(path, "w")) { note("", 0); }
  ~Reached() override { std::fclose(file_); }
  void OnTestEnd(const testing::TestInfo& test) override {
    const std::string name = std::string(test.test_suite_name()) + "." + test.name();
    note(name.c_str(), static_cast<long>(test.result()->elapsed_time()));
  }

 private:
  void note(const char* name, long took_ms) {
    std::fprintf(file_, "%s\t%ld\t", name, took_ms);
    for (int number = 0; number < kMost; ++number) {
      if (reached[number].exchange(false)) std::fprintf(file_, "%d ", number);
    }
    std::fprintf(file_, "\n");
    std::fflush(file_);
  }
  std::FILE* file_;
};

}  // namespace

bool detent_mutant(int number) noexcept {
  reached[number].store(true, std::memory_order_relaxed);
  return number == chosen();
}

int main(int count, char** words) {
  testing::InitGoogleTest(&count, words);
  if (const char* path = std::getenv("DETENT_REACHED")) {
    testing::UnitTest::GetInstance()->listeners().Append(new Reached(path));
  }
  return RUN_ALL_TESTS();
}
"""


@dataclasses.dataclass(frozen=True)
class Span:
    start: int
    end: int


def kind_of_brace(code, brace):
    """What the `{` begins: a "block" of statements, that of a "lambda", or a "value"."""
    before = code[:brace]
    bare = TRAILING.sub("", before)
    if LAMBDA_HEAD.search(bare):
        return "lambda"
    if bare.endswith(")"):
        depth, at = 0, len(bare) - 1
        while at >= 0:
            depth += {")": 1, "(": -1}.get(bare[at], 0)
            if depth == 0:
                break
            at -= 1
        return "lambda" if LAMBDA_HEAD.search(bare[:at]) else "block"
    last = before.rstrip()
    if not last or last[-1] in ";{}:" or re.search(r"\b(else|do|try)$", last):
        return "block"
    return "value"


def statements(code):
    """The spans of all statements of masked code, up to the `{` of a block or behind the `;`. Those
    in the bodies of lambdas are within others."""
    found, stack = [], [["block", 0]]
    for at, char in enumerate(code):
        top = stack[-1]
        if char in "([":
            stack.append(["paren", at])
        elif char in ")]":
            stack.pop()
        elif char == "{":
            kind = kind_of_brace(code, at)
            if top[0] == "block" and OF_A_TYPE.match(code[top[1]:at]):
                kind = "block"
            if kind == "block" and top[0] == "block":
                found.append(Span(top[1], at))
            stack.append(["paren" if kind == "value" else "block", at + 1, kind])
        elif char == "}":
            popped = stack.pop()
            if stack and popped[-1] == "block" and stack[-1][0] == "block":
                stack[-1][1] = at + 1
        elif char == ";" and top[0] == "block":
            found.append(Span(top[1], at + 1))
            top[1] = at + 1
    return found


def top_level(code, pattern):
    """The first match outside all brackets."""
    depth = 0
    for at, char in enumerate(code):
        depth += {"(": 1, "[": 1, "{": 1, ")": -1, "]": -1, "}": -1}.get(char, 0)
        match = re.compile(pattern).match(code, at) if depth == 0 else None
        if match:
            return match
    return None


def without_brackets(code):
    before = None
    while before != code:
        before, code = code, re.sub(r"\([^()]*\)|\[[^\[\]]*\]|\{[^{}]*\}", "", code)
    return code


def is_declaration(code):
    """Of a statement: two words in a row before its `=` or end, so there is a type."""
    head = re.split(r"(?<![=!<>+\-*/|&^%])=(?!=)| (?:[+\-*/|&^]|<<|>>)= ", code)[0]
    return bool(re.match(r"\s*(static |const |constexpr )*auto\b", head) or
                re.search(r"\w[>&*]*\s+[&*]*\w", without_brackets(head).strip().rstrip(";")))


def closing(code, start):
    """Behind the bracket that closes the one at `start`."""
    depth = 0
    for at in range(start, len(code)):
        depth += {"(": 1, ")": -1}.get(code[at], 0)
        if depth == 0:
            return at + 1
    return None


def of_initialiser(code, span):
    """A declaration's value, with how an alternative is chosen there."""
    text = code[span.start:span.end]
    equals = top_level(text, r"(?<![=!<>+\-*/|&^%])=(?!=)")
    if not equals:
        return None
    start = span.start + equals.end()
    end = span.end - 1 if text.rstrip().endswith(";") else span.end
    is_several = top_level(code[start:end], ",") is not None
    is_no_value = code[start:end].lstrip().startswith(("{", "["))
    return None if is_several or is_no_value else ("value", Span(start, end))


def place_of(code, span, at):
    """Where alternatives of what is at `at` in this statement are chosen: (how, span)."""
    label = LABEL.match(code, span.start, span.end)
    if label:
        span = Span(label.end(), span.end)
    head = HEAD.match(code, span.start, span.end)
    if head:
        end = closing(code, head.end() - 1)
        if end is None or end > span.end:
            return None
        if at >= end:
            return place_of(code, Span(end, span.end), at)
        return of_head(code, head[2], Span(head.end(), end - 1), at)
    start = re.compile(r"\s*(else\b\s*)?").match(code, span.start).end()
    text = code[start:span.end]
    if at < start or not text.endswith(";") or NO_STATEMENT.match(text):
        return None
    if re.match(r"(return|co_return|throw)\b", text) or not is_declaration(text):
        return "statement", Span(start, span.end)
    return of_initialiser(code, Span(start, span.end))


def of_head(code, word, span, at):
    """The same in the brackets of an `if` or a loop."""
    parts, start, depth = [], span.start, 0
    for here in range(span.start, span.end):
        depth += {"(": 1, "[": 1, "{": 1, ")": -1, "]": -1, "}": -1}.get(code[here], 0)
        if code[here] == ";" and depth == 0:
            parts.append(Span(start, here))
            start = here + 1
    parts.append(Span(start, span.end))
    mine = next(number for number, part in enumerate(parts) if at <= part.end)
    part, text = parts[mine], code[parts[mine].start:parts[mine].end]
    if word == "for" and len(parts) == 1:
        return None
    is_condition = mine == (1 if word == "for" else len(parts) - 1)
    if is_condition and not is_declaration(text):
        return ("value" if word == "switch" else "condition"), part
    if word == "for" and mine == 2:
        return "step", part
    return of_initialiser(code, part)


JOINED = {
    "statement": ("if (detent_mutant({n}))", "else", "", "{{", "}}"),
    "condition": ("detent_mutant({n}) ? static_cast<bool>(", ") :", "static_cast<bool>(", "", ")"),
    "value": ("detent_mutant({n}) ? (", ") :", "(", "(", "))"),
    "step": ("detent_mutant({n}) ? static_cast<void>(", ") :", "static_cast<void>(", "(", "))"),
}


def chosen_from(how, original, alternatives):
    """The code with its alternatives, each on lines of its own between marks."""
    before, after, last, opening, end = JOINED[how]
    text = opening.replace("{{", "{")
    for number, alternative in alternatives:
        text += f"\n/*mutant {number}*/ {before.format(n=number)}\n{alternative}\n{after}\n"
        text += "/*end*/\n"
    return text + f"{last}{original}\n{end.replace('}}', '}')}"


def first_difference(a, b):
    return next((at for at, (x, y) in enumerate(zip(a, b)) if x != y), min(len(a), len(b)))


class Schemata:
    """One file's mutants that have a place, as (number, mutant)."""

    def __init__(self, text, code, mutants, first_number):
        """`code` is the text with what is no code blanked, as long as it."""
        self.text, self.code = text, code
        self.groups, self.mutants = {}, {}
        ends = [0]
        for line in text.splitlines(keepends=True):
            ends.append(ends[-1] + len(line))
        spans = sorted(statements(code), key=lambda span: span.end - span.start)
        number = first_number
        for mutant in mutants:
            at = ends[mutant.line] + first_difference(mutant.before, mutant.after)
            found = next((span for span in spans if span.start <= at < span.end), None)
            place = found and place_of(code, found, at)
            if not place:
                continue
            how, span = place
            changed = (text[:ends[mutant.line]] + mutant.after +
                       text[ends[mutant.line] + len(mutant.before):])
            alternative = changed[span.start:span.end + len(changed) - len(text)]
            self.groups.setdefault((span, how), []).append((number, alternative))
            self.mutants[number] = mutant
            number += 1
        self.placed = list(self.mutants.values())

    def drop(self, numbers):
        for number in numbers:
            self.mutants.pop(number, None)

    def text_with_all(self):
        groups = {key: [item for item in items if item[0] in self.mutants]
                  for key, items in self.groups.items()}
        spans = sorted(((span, how) for (span, how), items in groups.items() if items),
                       key=lambda key: (key[0].start, -key[0].end))

        def render(start, end, inner):
            text, at = "", start
            while inner:
                (span, how), rest = inner[0], inner[1:]
                within = [key for key in rest if key[0].end <= span.end]
                inner = rest[len(within):]
                text += self.text[at:span.start]
                text += chosen_from(how, render(span.start, span.end, within), groups[(span, how)])
                at = span.end
            return text + self.text[at:end]

        # A constant that a mutant is of is read when the program runs.
        text = render(0, len(self.text), spans)
        text = re.sub(r"\bconstexpr( [^=;{}()]*=\s*\(\s*\n/\*mutant)", r"const\1", text)
        return DECLARATION + "\n" + text


def blamed(text, errors, name, mutants):
    """The numbers of the mutants that the compiler's errors are about: those in whose lines one is;
    if there is none, those of the constants that these lines name, which are constants no more."""
    lines = text.splitlines()
    begins = [(number, int(match[1])) for number, line in enumerate(lines, 1)
              for match in [re.match(r"/\*mutant (\d+)\*/", line)] if match]
    ends = [number for number, line in enumerate(lines, 1) if line == "/*end*/"]
    found, constants = set(), set()
    for match in re.finditer(rf"{re.escape(name)}:(\d+):", errors):
        line = int(match[1])
        at = bisect.bisect_right([begin for begin, _ in begins], line) - 1
        if at >= 0 and line <= ends[at]:
            found.add(begins[at][1])
        constants |= set(re.findall(r"\bk[A-Z]\w*", lines[line - 1]))
    found &= mutants.keys()
    return found or {
        number for number, mutant in mutants.items()
        if any(re.search(rf"\bconstexpr\b.*\b{each} =", mutant.before) for each in constants)}
