"""A page as a list of blocks, written as Markdown or as HTML."""

import dataclasses
import html

STYLE = """body { font: 15px/1.5 system-ui, sans-serif; max-width: 75rem; margin: 2rem auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; margin: 1rem 0; }
td, th { padding: 0.15rem 0.7rem; border-bottom: 1px solid #ddd; text-align: right; }
td:first-child, th:first-child { text-align: left; } img { max-width: 100%; }"""


@dataclasses.dataclass
class Heading:
    text: str

    def markdown(self):
        return f"## {self.text}"

    def html(self):
        return f"<h2>{html.escape(self.text)}</h2>"


@dataclasses.dataclass
class Paragraph:
    text: str

    def markdown(self):
        return self.text

    def html(self):
        return f"<p>{html.escape(self.text)}</p>"


@dataclasses.dataclass
class Image:
    """A chart; `path` is relative to the page."""

    path: str
    text: str

    def markdown(self):
        return f"![{self.text}]({self.path})"

    def html(self):
        return f'<p><img src="{html.escape(self.path)}" alt="{html.escape(self.text)}"></p>'


@dataclasses.dataclass
class Table:
    """Rows of strings; the first column is text, the others are figures."""

    head: list
    rows: list

    def markdown(self):
        rule = ["---"] + ["---:"] * (len(self.head) - 1)
        return "\n".join("| " + " | ".join(row) + " |" for row in [self.head, rule, *self.rows])

    def html(self):
        def line(tag, row):
            return "<tr>" + "".join(f"<{tag}>{html.escape(cell)}</{tag}>" for cell in row) + "</tr>"
        return "\n".join(["<table>", line("th", self.head),
                          *(line("td", row) for row in self.rows), "</table>"])


def markdown_page(title, blocks):
    return f"# {title}\n\n" + "\n\n".join(block.markdown() for block in blocks) + "\n"


def html_page(title, blocks):
    body = "\n".join(block.html() for block in blocks)
    return (f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{title}</title>\n'
            f"<style>{STYLE}</style></head>\n<body><h1>{title}</h1>\n{body}\n</body></html>\n")
