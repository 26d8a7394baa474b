"""Every command in every status of the stacks, twice in a row: what comes of it, and where it leads from there."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from advised_commands import LOOKING, name_of
from shell import COMMANDS
from situations import SITUATIONS
from status_page import placed, section
from status_walk import walking
from walked_commands import ACTING, LEFT_OUT, OPERATING, READING, violations, walk

from cfngen.deploy.messages.stack_status import StackHealth, StackStatus

PAGE = Path(__file__).parents[2] / "docs/operate/operations.md"


@pytest.mark.drill
# A test in a worker of xdist has its threads beside it; a copy uses none of them.
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_every_command_in_every_status() -> None:
    """`CFNGEN_UPDATE_GOLDEN=1` writes the tables of the page again, and still fails, so that they are read."""
    with walking() as where:
        found, known = walk(where, SITUATIONS)
    violating = list(violations(found, known))
    assert violating == [], "\n".join(violating)
    page = PAGE.read_text("utf-8")
    expected = placed(page, section(found, known))
    if page != expected and os.environ.get("CFNGEN_UPDATE_GOLDEN"):
        PAGE.write_text(expected, "utf-8")
        pytest.fail(f"{PAGE.name} rewritten: review it, then run without CFNGEN_UPDATE_GOLDEN")
    assert page == expected


def test_every_command_is_walked_or_left_out_for_a_reason() -> None:
    """What any output advises is followed for all of them, but for what is in `NOT_FOLLOWED`."""
    walked = {name_of(command) for command in (*ACTING, *READING, *OPERATING)}
    assert walked | LEFT_OUT.keys() == COMMANDS.keys()
    assert not walked & LEFT_OUT.keys()
    assert set(LOOKING) < COMMANDS.keys()


def test_every_status_of_cloudformation_is_tried() -> None:
    """Of those that CloudFormation's model names; a status that it adds some day is met as one under way."""
    import botocore.session

    model = botocore.session.get_session().get_service_model("cloudformation")
    tried = {situation.status for situation in SITUATIONS}
    assert set(model.shape_for("StackStatus").enum) - tried == {
        # They pass within a second, and are followed by the event of the operation's end.
        "DELETE_COMPLETE",
    }
    assert all(StackStatus(each).health is not StackHealth.BUSY or each.endswith("_IN_PROGRESS") for each in tried)
