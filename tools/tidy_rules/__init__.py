"""The rules of tools/tidy: reads a tree, asks every theme, and takes allowances into account."""

import dataclasses

from tidy_rules import layering, prose, shape, words
from tidy_rules.source import Finding, Tree

THEMES = (layering, words, shape, prose)
RULES = {rule: meaning for theme in THEMES for rule, meaning in theme.RULES.items()}
RULES["allowance"] = "a tidy-ok comment names a known rule, gives a reason, and is needed"


@dataclasses.dataclass
class Report:
    """What `check_tree` found; warnings don't fail the check."""

    findings: list
    warnings: list
    file_count: int


def check_tree(root):
    """Checks every source file under `root` against every rule."""
    tree = Tree.read(root)
    findings, warnings = [], []
    for theme in THEMES:
        for finding in theme.check(tree):
            if finding.is_warning:
                warnings.append(finding)
            elif not tree.file(finding.path).allows(finding.line, finding.rule):
                findings.append(finding)
    for file in tree.files:
        findings += unfit_allowances(file)
    key = lambda finding: (finding.path, finding.line, finding.rule)  # noqa: E731
    return Report(sorted(findings, key=key), sorted(warnings, key=key), len(tree.files))


def unfit_allowances(file):
    """Allowances that name no rule, give no reason, or allowed nothing."""
    for allowance in file.allowances:
        if allowance.rule not in RULES:
            problem = f"'{allowance.rule}' is no rule; tools/tidy --rules lists them"
        elif not allowance.reason:
            problem = "gives no reason; write tidy-ok(rule): and the reason"
        elif not allowance.used:
            problem = f"nothing here breaks '{allowance.rule}'; remove the comment"
        else:
            continue
        yield Finding(file.path, allowance.line, "allowance", problem)
