"""How often the emulator says yes where AWS says no: wrong creations and updates, and faults that we once had."""

from __future__ import annotations

import pytest
from wrong_templates import Row, attempt, rows

pytestmark = pytest.mark.drill

# What the emulator accepts although AWS does not, and why it is not modelled.
ACCEPTED: dict[str, str] = {}
# Rows with properties or attributes that our templates do not use: the emulator refuses them as not modelled.
NOT_MODELLED = {
    "acl-with-owner-enforced",
    "asymmetric-key-rotated",
    "attribute-of-application-load-balancer",
    "bucket-name-with-two-dots",
    "expires-before-transition",
    "group-name-in-use",
    "groups-beside-interfaces",
    "hook-role-of-instances",
    "interface-replaced-with-its-address",
    "key-becomes-multi-region",
    "resource-type-changed",
    "secret-name-awaits-deletion",
    "secret-name-in-use",
    "tls-listener-without-certificate",
    "wait-condition-updated",
    "wait-handle-never-signalled",
}
# What the emulator refuses for the same reason in other words.
OTHER_WORDS = {
    "bucket-policy-public": "public policies are prevented",
    "condition-undefined": "Unresolved condition dependency ProvisionedIops",
    "named-load-balancer-replaced": "with the same name 'prod-api' exists",
    "reference-misspelt": "Unresolved resource dependencies [VPC]",
    "snapshot-policy-of-bucket": "does not support snapshots",
    "vpc-replaced-under-its-gateway": "is already associated",
}


ALL = [row for name in ("creations", "updates", "mends_taken_out") for row in rows(name)]


@pytest.mark.parametrize("row", ALL, ids=lambda row: row["id"])
def test_it_is_refused_for_the_right_reason(row: Row) -> None:
    refused = attempt(row)
    if row["id"] in ACCEPTED:
        assert refused is None, f"no longer accepted: {refused}"
        return
    assert refused, f"accepted: {row['why']} {row.get('source', '')}"
    assert refused.modelled == (row["id"] not in NOT_MODELLED), refused.words
    if not refused.modelled:
        return
    assert OTHER_WORDS.get(row["id"], row["says"]) in refused.words
    if row["refused_by"] == "resource" and refused.resources:
        assert row["resource"] in refused.resources


def test_fewer_than_one_in_ten_is_accepted() -> None:
    drawn_up = rows("creations") + rows("updates")
    assert len(drawn_up) == 100
    assert ACCEPTED.keys() <= {row["id"] for row in drawn_up}
    assert len(ACCEPTED) < len(drawn_up) / 10
