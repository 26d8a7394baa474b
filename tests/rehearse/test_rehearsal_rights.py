"""The operator's policy with what docs/rehearsal.md adds to it suffices for a rehearsal."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from deployed import place
from rehearsing import Person, left

from cfngen.deploy.policies.permissions import SERVICE_ROLE, operator_policy
from cfngen.rehearse.clusters import NAME

pytestmark = pytest.mark.drill

PAGE = Path(__file__).parents[2] / "docs" / "rehearsal.md"
ROLE = f"arn:aws:iam::123456789012:role/{SERVICE_ROLE}"


def test_the_policies_of_the_pages_suffice() -> None:
    policy = operator_policy("123456789012", "us-west-2", NAME)
    [beside] = re.findall(r"^```json\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    policy["Statement"] += json.loads(beside)["Statement"]
    with place() as where, where.served.permissions.enforcing(policy) as credentials:
        person = Person(where.connected(where.session_of(credentials)))
        ended = person.rehearse("change-set", "program", "roll", "secrets", role_arn=ROLE)
        assert [step.error for step in ended.rehearsal.steps if step.error] == []
        assert (ended.rehearsal.result, ended.left) == ("as expected", ())
        assert left(where) == []
