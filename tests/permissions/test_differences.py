"""What policies grant more and less: by what they allow, whatever their statements are called."""

from __future__ import annotations

from typing import Any

import pytest

from cfngen.permissions.differences import permission_differences
from cfngen.permissions.statements import Statement, allow

TAGGED = {"StringEquals": {"aws:ResourceTag/team": "shop"}}


def deny(sid: str, action: str) -> Statement:
    return {"Sid": sid, "Effect": "Deny", "Action": [action], "Resource": ["*"]}


def compared(former: list[Statement], present: list[Statement]) -> tuple[list[Any], list[Any]]:
    """What is granted more, and less: statement and actions."""
    differences = [*permission_differences({"who": former}, {"who": present})]
    assert len(differences) <= 1
    return tuple(  # type: ignore[return-value]
        [
            (change.sid, *change.actions)
            for difference in differences
            for change in (difference.more if more else difference.less)
        ]
        for more in (True, False)
    )


@pytest.mark.parametrize(
    ("former", "present", "more", "less"),
    [
        ([allow("A", "s3:GetObject")], [allow("B", "s3:GetObject")], [], []),
        ([allow("A", "s3:Get s3:Put")], [allow("A", "s3:Put"), allow("B", "s3:Get")], [], []),
        ([allow("A", "s3:Get")], [allow("A", "s3:Put s3:Get s3:Add")], [("A", "s3:Add", "s3:Put")], []),
        ([allow("A", "s3:Get", ["x", "y"])], [allow("A", "s3:Get", ["x"])], [], [("A", "s3:Get")]),
        ([allow("A", "s3:Get")], [allow("A", "s3:Get", ["*"], TAGGED)], [("A", "s3:Get")], [("A", "s3:Get")]),
        ([], [deny("A", "s3:Get")], [], [("A", "s3:Get")]),
        ([deny("A", "s3:Get")], [], [("A", "s3:Get")], []),
    ],
    ids=["another id", "divided", "more actions", "fewer resources", "condition", "denied", "denied no more"],
)
def test_what_is_granted_more_and_less(
    former: list[Statement], present: list[Statement], more: list[Any], less: list[Any]
) -> None:
    assert compared(former, present) == (more, less)


def test_a_new_grantee_has_more_and_one_that_is_gone_less() -> None:
    new, gone = permission_differences({"nodes": [allow("A", "s3:Get")]}, {"master": [allow("A", "s3:Get")]})
    assert (new.grantee, len(new.more), len(new.less)) == ("master", 1, 0)
    assert (gone.grantee, len(gone.more), len(gone.less)) == ("nodes", 0, 1)
