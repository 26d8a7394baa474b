"""Every row of the table of refusals is refused, and the table that a person reads is the one that is tried."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

import pytest
from botocore.exceptions import ClientError
from refusal import Creation, Refusal, ServiceCall, TestedElsewhere, Update, tables
from small_stacks import reasons, refused_early, text

from cfngen.sandbox.cloudformation import ApiError, CloudFormation

PAGE = Path(__file__).with_name("refusals.md")
TABLES = tables()
CAPABILITIES = ["CAPABILITY_IAM", "CAPABILITY_NAMED_IAM"]


TRIED = [row for table in TABLES.values() for row in table if not isinstance(row.tried, TestedElsewhere)]


@pytest.mark.drill
@pytest.mark.parametrize("row", TRIED, ids=lambda row: f"{row.resource}: {row.condition}")
def test_it_is_refused(row: Refusal, cloud: CloudFormation) -> None:
    assert row.words in refusal_of(row, cloud)


def refusal_of(row: Refusal, cloud: CloudFormation) -> str:
    if isinstance(row.tried, ServiceCall):
        with pytest.raises((ClientError, ApiError)) as raised:
            row.tried.attempt(cloud)
        return str(raised.value)
    assert isinstance(row.tried, (Creation, Update))
    resources = row.tried.resources() if isinstance(row.tried, Creation) else row.tried.first()
    if isinstance(row.tried, Creation) and not row.tried.fails:
        with pytest.raises(ApiError) as raised:
            cloud.create_stack("s", body=text(dict(resources)), capabilities=CAPABILITIES)
        return str(raised.value)
    stack = cloud.wait(cloud.create_stack("s", body=text(dict(resources)), capabilities=CAPABILITIES))
    if isinstance(row.tried, Creation):
        assert stack.status == "ROLLBACK_COMPLETE"
        return refused_early(cloud).get(row.tried.fails) or " ".join(reasons(stack, row.tried.fails, "CREATE_FAILED"))
    assert stack.status == "CREATE_COMPLETE", stack.events
    second = text(dict(row.tried.second(resources)))
    if not row.tried.fails:
        with pytest.raises(ApiError) as raised:
            cloud.update_stack("s", body=second, capabilities=CAPABILITIES)
        return str(raised.value)
    cloud.wait(cloud.update_stack("s", body=second, capabilities=CAPABILITIES))
    assert stack.status == "UPDATE_ROLLBACK_COMPLETE"
    failed = [*reasons(stack, row.tried.fails, "UPDATE_FAILED"), *reasons(stack, row.tried.fails, "CREATE_FAILED")]
    return refused_early(cloud).get(row.tried.fails) or " ".join(failed)


def test_no_row_stands_there_twice() -> None:
    names = Counter((row.resource, row.condition) for table in TABLES.values() for row in table)
    assert [name for name, count in names.items() if count > 1] == []


def test_what_is_tested_elsewhere_is_there() -> None:
    for table in TABLES.values():
        for row in table:
            if isinstance(row.tried, TestedElsewhere):
                path, name = row.tried.test.split("::")
                source = (Path(__file__).parents[1] / path).read_text()
                assert f"def {name.split('[')[0]}(" in source, row


def test_the_page_shows_the_rows() -> None:
    page = rendered()
    if os.environ.get("CFNGEN_UPDATE_GOLDEN") and PAGE.read_text() != page:
        PAGE.write_text(page)
        pytest.fail(f"{PAGE} was written again")
    assert PAGE.read_text() == page


def rendered() -> str:
    lines = [
        "# What the emulator refuses",
        "",
        "Written by `make golden` from the rows in `refusals_*.py`, each of which `test_refusals.py` tries. Evidence:",
        "*documented*, with these words; *condition documented*, the words are not AWS's; *seen* in somebody's log;",
        "*assumed*. The rules are in `cfngen/sandbox/services` and in the handlers of the resource types.",
    ]
    for title, table in TABLES.items():
        lines += ["", f"## {title}", ""]
        lines += ["| resource | refused | words | source | evidence | test |", "|---|---|---|---|---|---|"]
        for row in table:
            test = row.tried.test if isinstance(row.tried, TestedElsewhere) else "test_refusals.py"
            cells = (f"`{row.resource}`", row.condition, row.words, row.source, row.evidence, f"`{test}`")
            lines.append(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |")
    return "\n".join(lines) + "\n"
