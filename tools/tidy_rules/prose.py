"""Plain English in pages and comments: words that make a reader go back, and long sentences.

A pattern is a hint, and some uses of its words are good English. So there is a limit for each area
of the tree, which leaves room for good uses, and a limit for one sentence. The limits of an area
are close to the figures of well-known code bases. Rewrite a sentence until a reader understands it
at once. Replacing one word by another does not help the reader.

Not read: code blocks, inline code, targets of links, cells of figures, indented examples in
comments, and the pages in EXEMPT.
"""

import collections
import dataclasses
import re

from tidy_rules.source import Finding

HITS_PER_1000 = 3.0
LONG_WORDS, LONG_PERCENT = 30, 5.0
SENTENCE_WORDS, SENTENCE_HITS = 50, 2
FEWEST_WORDS = 500  # a rate of fewer words says little
WORST = 5

RULES = {
    "plain-words": f"an area has at most {HITS_PER_1000} hits of the patterns per 1,000 words",
    "long-sentences": f"at most {LONG_PERCENT:g} % of an area's sentences have more than "
                      f"{LONG_WORDS} words",
    "sentence": f"a sentence has at most {SENTENCE_WORDS} words and {SENTENCE_HITS} hits of the "
                "word patterns",
}

# The pages in the root folder are one area; the others are a folder each.
ROOT_PAGES = ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md")
FOLDERS = ("docs", "include", "src", "dashboard", "clients", "tests")
CODE_SUFFIXES = {".h", ".cc", ".py", ".js", ".mjs", ".ts", ".go"}
# Programs write the reports and the benchmark pages. The patterns are of English, not of Chinese.
EXEMPT = ("docs/reports/", "docs/benchmarks", "docs/zh/")

# Patterns of text in lower case → what to write instead.
PATTERNS = (
    (r"\b(?:what(?:ever)?|whoever|that which)\b", "name the thing: 'due tasks', not 'what is due'"),
    (r"(?:^|[,;:(]|\b(?:of|for|to|by|with|from|as|than|and|or|but|if|then|is|are)) ?"
     r"\bwho(?:se)?\b", "name the actor: 'the waiting worker', not 'who waits'"),
    (r"\b(?:none(?! the less)|nothing|nobody|no one|neither)\b",
     "say what happens: 'every task survives', not 'nothing is lost'"),
    (r"\b(?:is|are|was|were) to (?!(?:the|an?|this|that|its?)\b)[a-z]+", "must, will or should"),
    (r"\b(?:the|this|that|each|any|which|another|other|first|last|old|new|next) ones?\b"
     r"(?! (?:[a-z]+s|thread|task|timer|shard|queue|call|byte|line|word|second|hour|day)\b)",
     "repeat the noun"),
    (r"\b(?:of|for|in|at|by|with|from|to|behind|after|before) (?:which|whom)\b",
     "begin a new sentence that names the noun"),
    (r"\banew\b", "again"),
    (r"\bmeanwhile\b", "during this time"),
    (r"\bby turns\b", "alternately"),
    (r"\bbut for\b", "except"),
    (r"\bas ever\b", "as before"),
    (r"\bbesides?\b", "next to, also, or except"),
    (r"\blikewise\b", "also"),
    (r"\bthereof\b", "of, and the noun"),
    (r"\bbe it\b", "if, or whether"),
    (r"\bnone the less\b", "still"),
)
HIT = re.compile("|".join(f"({pattern})" for pattern, _ in PATTERNS))
ASKING = 1  # the group of 'what', which is good English in a question

# A capital letter, or the name of a function or file, begins the next sentence.
END_OF_SENTENCE = re.compile(r"(?:(?<=[.!?:;])|(?<=[.!?][)\"])|(?<=[.!?:]\*\*))\s+"
                             r"(?=[*_\"(]*[A-Z]|\w+[_.(/]\w)|\s·\s")
WORD = re.compile(r"\S*\w\S*")
INLINE_CODE = re.compile(r"``.*?``|`[^`]*`", re.DOTALL)
PYTHON_CODE = re.compile(INLINE_CODE.pattern + r"|\bNone\b", re.DOTALL)  # None is a value
CODE_BLOCK = re.compile(r"^( *)(```|~~~).*?^\1\2[^\n]*$|<!--.*?-->"
                        r"|(?<=\n\n)(?: {4}[^\n]*\n)+", re.DOTALL | re.MULTILINE)
LINK = re.compile(r"!?\[([^\]]*)\]\([^)]*\)")
ITEM = re.compile(r"\s*(?:[-*+]|\d+\.)\s")
COLUMNS = re.compile(r"\S {2,}\S")  # a row of a table in a comment
DOCSTRING = re.compile(r'"""(.*?)"""', re.DOTALL)
BLOCK_COMMENT = re.compile(r"/\*+(.*?)\*/", re.DOTALL)
AFTER_CODE = {"//": re.compile(r"\s//<? [^\"]*$"), "#": re.compile(r"\s{2}# [^\"]*$")}


@dataclasses.dataclass
class Sentence:
    path: str
    line: int
    text: str
    words: int
    hits: list  # (the words, what to write instead)


def check(tree):
    areas = collections.defaultdict(list)
    for file in tree.files:
        if (area := area_of(file)):
            areas[area] += sentences_of(file)
    for area, sentences in areas.items():
        yield from check_area(area, sentences)
        yield from check_sentences(sentences)


def area_of(file):
    """The area of a file; None for a file that these rules do not read."""
    if file.path in ROOT_PAGES:
        return ROOT_PAGES[0]
    folder = file.path.split("/")[0]
    is_read = file.suffix in CODE_SUFFIXES or file.suffix == ".md" and folder in ("docs", "clients")
    return folder if is_read and folder in FOLDERS and not file.path.startswith(EXEMPT) else None


def check_area(area, sentences):
    words = sum(sentence.words for sentence in sentences)
    if words < FEWEST_WORDS:
        return
    rate = 1000 * sum(len(sentence.hits) for sentence in sentences) / words
    if rate > HITS_PER_1000:
        worst = sorted(sentences, key=lambda s: (-len(s.hits), -s.words))[:WORST]
        yield Finding(area, 1, "plain-words", f"{rate:.2f} hits per 1,000 words, {HITS_PER_1000} "
                      f"are allowed; {advice_on(worst)}. The worst:{shown(worst)}")
    percent = 100 * sum(s.words > LONG_WORDS for s in sentences) / len(sentences)
    if percent > LONG_PERCENT:
        worst = sorted(sentences, key=lambda s: -s.words)[:WORST]
        yield Finding(area, 1, "long-sentences", f"{percent:.1f} % of the sentences have more than "
                      f"{LONG_WORDS} words, {LONG_PERCENT:g} % are allowed; make two sentences, "
                      f"or a list. The worst:{shown(worst)}")


def check_sentences(sentences):
    for sentence in sentences:
        if sentence.words > SENTENCE_WORDS:
            yield Finding(sentence.path, sentence.line, "sentence", f"{sentence.words} words, "
                          f"{SENTENCE_WORDS} are allowed; make two sentences, or a list: "
                          f"{sentence.text[:80]} …")
        if len(sentence.hits) > SENTENCE_HITS:
            yield Finding(sentence.path, sentence.line, "sentence", f"{len(sentence.hits)} hits, "
                          f"{SENTENCE_HITS} are allowed; {advice_on([sentence])}")


def advice_on(sentences):
    found = collections.defaultdict(dict)
    for words, instead in (hit for sentence in sentences for hit in sentence.hits):
        found[instead][f"'{words}'"] = None
    return "; ".join(f"instead of {', '.join(words)}: {instead}"
                     for instead, words in found.items())


def shown(sentences):
    return "".join(f"\n    {s.path}:{s.line}: {s.words} words: {s.text[:200]}" for s in sentences)


def sentences_of(file):
    code = PYTHON_CODE if file.suffix == ".py" else INLINE_CODE
    for line, paragraph in paragraphs_of(file):
        paragraph = code.sub(lambda match: "X" + line_breaks(match), paragraph)
        start = 0
        for end in [*(match.end() for match in END_OF_SENTENCE.finditer(paragraph)), None]:
            text = " ".join(paragraph[start:end].split())
            words = len(WORD.findall(text))
            if words >= 3:
                yield Sentence(file.path, line + paragraph.count("\n", 0, start), text, words,
                               hits_of(text))
            start = end


def hits_of(text):
    """(the words, what to write instead) of each hit in a sentence."""
    is_question = text.rstrip('*")').endswith("?")
    return [(match[0].strip(" ,;:("), PATTERNS[match.lastindex - 1][1])
            for match in HIT.finditer(text.lower())
            if not (is_question and match.lastindex == ASKING)]


def line_breaks(match):
    """Replaces a match so that the lines after it keep their numbers."""
    return "\n" * match[0].count("\n")


def paragraphs_of(file):
    """(first line, text) of each paragraph. The text has the line breaks of the file."""
    if file.suffix == ".md":
        text = CODE_BLOCK.sub(line_breaks, file.text)
        text = LINK.sub(lambda match: match[1] if " " in match[1] else "X", text)  # X: a file name
        return joined(enumerate(text.split("\n"), start=1))
    if file.suffix == ".py":
        return [*comment_paragraphs(file.lines, "#"), *block_paragraphs(file.text, DOCSTRING)]
    return [*comment_paragraphs(file.lines, "//"), *block_paragraphs(file.text, BLOCK_COMMENT)]


def comment_paragraphs(lines, mark):
    """Comments that begin at the same column belong together, except two comments after code."""
    read, last_column = [], -1
    for number, line in enumerate(lines, start=1):
        column = line.find(mark)
        is_after_code = column > 0 and not line[:column].isspace()
        if is_after_code:
            comment = AFTER_CODE[mark].search(line)
            column = line.index(mark, comment.start()) if comment else -1
        if column != last_column or is_after_code:
            read.append((number, ""))
        last_column = column
        words = line[column:].lstrip(mark[0]).removeprefix("<") if column >= 0 else ""
        is_prose = not words.startswith(("     ", "!", " tidy-ok("))  # ! of #!/usr/bin/env
        read.append((number, words if is_prose else ""))
    return joined(read)


def block_paragraphs(text, pattern):
    """Those of docstrings or of /** comments; lines that are indented further are examples."""
    for match in pattern.finditer(text):
        indent = text[text.rfind("\n", 0, match.start()) + 1:match.start()]
        if indent.strip():
            continue  # a string or a comment within code
        lines = (line if line.lstrip(" ").startswith("*") or not line.startswith(indent + "    ")
                 else "" for line in match[1].split("\n"))
        yield from joined(enumerate((line.lstrip(" *") for line in lines),
                                    start=text.count("\n", 0, match.start()) + 1))


def joined(numbered_lines):
    """Joins lines up to an empty line, a heading, an item of a list or a row of a table."""
    first, text = 0, []
    for number, line in numbered_lines:
        line = line.strip()
        if text and (not line or line[0] in "#|" or ITEM.match(line) or COLUMNS.search(line)):
            yield first, "\n".join(text)
            text = []
        if not line:
            continue
        if line[0] == "|":
            yield from ((number, cell) for cell in line.split("|") if not is_figure(cell))
        elif line[0] == "#":
            yield number, line.lstrip("# ")
        else:
            first = first if text else number
            text.append(line)
    if text:
        yield first, "\n".join(text)


def is_figure(cell):
    words = cell.split()
    return 2 * sum(word[0].isdigit() for word in words) >= len(words)
