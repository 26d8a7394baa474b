"""The operator's policy with docs/reference/policies/rehearsal-rights.json beside it suffices for a rehearsal."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from deployed import place
from documented_policies import bucket_policy, operator_policy
from rehearsing import Person, left

from cfngen.permissions.operators import SERVICE_ROLE
from cfngen.permissions.scope import Scope
from cfngen.rehearse.clusters import REHEARSAL_NAME

pytestmark = pytest.mark.drill

FILE = Path(__file__).parents[2] / "docs/reference/policies/rehearsal-rights.json"
ROLE = f"arn:aws:iam::123456789012:role/{SERVICE_ROLE}"


def test_the_policies_of_the_pages_suffice() -> None:
    policy = operator_policy(Scope("123456789012", "us-west-2", REHEARSAL_NAME))
    policy["Statement"] += bucket_policy(Scope("123456789012", "us-west-2", REHEARSAL_NAME))["Statement"]
    policy["Statement"] += json.loads(FILE.read_text())["Statement"]
    with place() as where, where.served.permissions.enforcing(policy) as credentials:
        person = Person(where.connected(where.session_of(credentials)))
        ended = person.rehearse("change-set", "program", "roll", "secrets", role_arn=ROLE)
        assert [step.error for step in ended.rehearsal.steps if step.error] == []
        assert (ended.rehearsal.result, ended.left) == ("as expected", ())
        assert left(where) == []
