"""What became of a combination: it was generated, the checks refused it, or something is wrong with cfngen."""

from __future__ import annotations

import functools
import json
import re
import time
import traceback
from collections.abc import Mapping
from dataclasses import dataclass, field

from combinations import conflicts_in, file_of

from cfngen import output, userdata
from cfngen.cluster.load import parse
from cfngen.cluster.problems import ClusterFileError
from cfngen.lint import cache
from cfngen.lint.findings import LintFinding
from cfngen.lint.views import View, make_views
from cfngen.templates import generate


@dataclass
class Outcome:
    """What became of a combination.

    Attributes:
        combination: its values.
        refusals: problems that the checks of the cluster file found; a combination with any is refused.
        faults: what is wrong with cfngen: a traceback, a refusal that `CONFLICTS` does not explain, or none where it
            asks for one.
        views: the cache keys of the verdicts about its templates.
        findings: what lint says about its templates.
        template_bytes: size of the largest template.
        userdata_bytes: size of the largest UserData.
        seconds: how long it took to generate the templates.
        lint_seconds: how long it took to lint those that no combination before had.
    """

    combination: Mapping[str, str]
    refusals: list[str] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    views: list[str] = field(default_factory=list)
    findings: list[str] = field(default_factory=list)
    template_bytes: int = 0
    userdata_bytes: int = 0
    seconds: float = 0
    lint_seconds: float = 0


def generated(combination: Mapping[str, str], standalone: bool) -> tuple[Outcome, dict[str, View], str]:
    """Generate the templates and UserData of a combination.

    Args:
        combination: its values.
        standalone: whether the template with everything in it is linted, too.

    Returns:
        The outcome, the inputs of lint by the cache keys of their verdicts, and the region.
    """
    outcome = Outcome(combination)
    begin = time.monotonic()
    views: dict[str, View] = {}
    file = file_of(combination)
    try:
        views = _generate(file, outcome, standalone)
    except ClusterFileError as error:
        outcome.refusals = [str(problem) for problem in error.problems]
    except Exception:
        outcome.faults.append(traceback.format_exc())
    outcome.faults += _unexpected(outcome)
    outcome.views = list(views)
    outcome.seconds = time.monotonic() - begin
    return outcome, views, file["region"]


def _generate(file: Mapping[str, object], outcome: Outcome, standalone: bool) -> dict[str, View]:
    cluster = parse(file)
    documents = generate(cluster)
    roles = userdata.roles(cluster)
    files = output.render(documents, roles)
    outcome.template_bytes = max(len(files[f"{document.name}.json"]) for document in documents)
    outcome.userdata_bytes = max(role.size for role in roles)
    views, findings = make_views(documents, {})
    outcome.findings += [_line(finding) for finding in findings]
    fingerprint = _fingerprint(cluster.region)
    return {
        cache.cache_key(fingerprint, view.inputs_of_verdict): view
        for view in views
        if standalone or view.document != "standalone"
    }


_fingerprint = functools.cache(cache.fingerprint)


def _line(finding: LintFinding) -> str:
    return f"{finding.document}: {finding.rule} {finding.message} at {'.'.join(map(str, finding.path))}"


def lines_of(document: str, verdict: cache.Verdict) -> list[str]:
    """Return the findings of a verdict as lines."""
    return [
        f"{document}: {fields['rule']} {fields['message']} at {'.'.join(map(str, fields['path']))}"
        for fields in verdict
    ]


def _unexpected(outcome: Outcome) -> list[str]:
    """Return what `CONFLICTS` says otherwise of a combination than the checks."""
    if outcome.faults:
        return []
    conflicts = conflicts_in(outcome.combination)
    if not outcome.refusals:
        return [
            f"accepted, although conflicts.py says it is refused: {conflict.message} ({conflict.described})"
            for conflict in conflicts
        ]
    return [
        f"refused, and no row of conflicts.py explains it: {refusal}"
        for refusal in outcome.refusals
        if not any(re.search(conflict.message, refusal) for conflict in conflicts)
    ]


def described(combination: Mapping[str, str]) -> str:
    """Return a combination as the argument of `--only`."""
    return json.dumps(dict(combination))
