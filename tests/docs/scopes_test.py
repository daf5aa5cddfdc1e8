#!/usr/bin/env python3
"""Checks the table of scopes in docs/operating/security.md: it must have every route, with the
scope that the server requires (src/server/routes/routes.cc), and no other routes.

Argument: the root of the tree. A test with a wrong table shows that every error is found.
"""

import json
import pathlib
import re
import sys
import unittest

ROOT = pathlib.Path(sys.argv[1]).resolve()

ROUTE = re.compile(r'add(?:_with_query)?\("([A-Z]+)", "([^"]+)", Need::(\w+)')
OPEN = re.compile(r'serve\("([^"]+)"')
# In "`GET /a`, `/b`" the second route has the method of the first. `/c/…` stands for all routes
# that begin with `/c/`.
SPAN = re.compile(r"`(?:([A-Z]+(?:, [A-Z]+)*) )?(/[^`]*)`")
# The first words of the cell "needs", for each need in the code.
WORDS = {"nothing": "nothing", "any_token": "any token", "look": "any scope for the queue",
         "look_all": "any scope for all queues", "produce": "`produce` for",
         "consume": "`consume` for", "admin": "`admin` for the queue",
         "admin_all": "`admin` for all queues"}


def routes_of(code):
    """The method, the path and the need of each route."""
    routes = {(method, path): need for method, path, need in ROUTE.findall(code)}
    return routes | {("GET", path): "nothing" for path in OPEN.findall(code)}


def rows_of(page):
    """For each path in the table: its method, the path, and the text of the next cell."""
    table = page[page.index("| route | needs |"):].split("\n\n")[0]
    for line in table.splitlines()[2:]:
        cells = line.strip("| ").split(" | ")
        methods = []
        for named, path in SPAN.findall(cells[0]):
            methods = named.split(", ") if named else methods
            yield from ((method, path, cells[1]) for method in methods)


def is_listed(route, row):
    method, path, _ = row
    begins = path.removesuffix("…")
    is_it = route[1] == path or (begins != path and route[1].startswith(begins))
    return route[0] == method and is_it


def faults(code, page):
    routes, rows = routes_of(code), list(rows_of(page))
    for route, need in routes.items():
        cells = [row[2] for row in rows if is_listed(route, row)]
        if not cells:
            yield f"{' '.join(route)} is missing"
        if not all(cell.startswith(WORDS[need]) for cell in cells):
            yield f"{' '.join(route)} needs {need}, not: {'; '.join(cells)}"
    for row in rows:
        if not any(is_listed(route, row) for route in routes):
            yield f"there is no {row[0]} {row[1]}"


class Scopes(unittest.TestCase):
    maxDiff = None

    def test_the_table_has_every_route_with_its_scope(self):
        code = (ROOT / "src/server/routes/routes.cc").read_text("utf-8")
        page = (ROOT / "docs/operating/security.md").read_text("utf-8")
        self.assertEqual([], list(faults(code, page)))
        document = json.loads((ROOT / "src/server/http/openapi.json").read_text("utf-8"))
        described = {(method.upper(), path) for path, operations in document["paths"].items()
                     for method in operations if method != "parameters"}
        self.assertEqual(set(), described - set(routes_of(code)))
        self.assertGreater(len(described), 40)

    def test_each_fault_is_found_and_nothing_else(self):
        code = """add("GET", "/a", Need::look, &Routes::a);
                  add_with_query("PUT", "/a/{id}", Need::admin, &Routes::b);
                  add("GET", "/b", Need::look_all, &Routes::c); serve("/open", d);"""
        page = """| route | needs |\n|---|---|\n| `GET /open`, `/gone` | nothing |
| `PUT, GET /a…` | `admin` for the queue |\n\n| `GET /b` | any scope for all queues |"""
        self.assertEqual(["GET /a needs look, not: `admin` for the queue", "GET /b is missing",
                          "there is no GET /gone"], list(faults(code, page)))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
