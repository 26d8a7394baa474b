"""Through which states a running cluster begins and ends to use an issuer: one at a time, in the right order."""

from __future__ import annotations

from typing import Any

import pytest

from cfngen.cluster.iam.issuer_stages import (
    ACCEPTED,
    OFF,
    SIGNING,
    WITH_ADDON_ROLES,
    IssuerState,
    issuer_stages,
    issuer_state,
    recorded_state,
    state_to_record,
)
from cfngen.cluster.load import parse
from cfngen.templates.immutable_settings import settings_to_record

FILES: dict[int, dict[str, Any]] = {
    OFF: {},
    ACCEPTED: {"serviceAccountIssuer": {"signTokens": False}},
    SIGNING: {"serviceAccountIssuer": {}, "iam": {"addonRoles": False}},
    WITH_ADDON_ROLES: {"serviceAccountIssuer": {}},
}
PATHS = [
    # deployed, wanted, states of the updates
    (OFF, WITH_ADDON_ROLES, [ACCEPTED, SIGNING, WITH_ADDON_ROLES]),
    (OFF, ACCEPTED, [ACCEPTED]),
    (OFF, SIGNING, [ACCEPTED, SIGNING]),
    (ACCEPTED, WITH_ADDON_ROLES, [SIGNING, WITH_ADDON_ROLES]),
    (SIGNING, WITH_ADDON_ROLES, [WITH_ADDON_ROLES]),
    (WITH_ADDON_ROLES, OFF, [SIGNING, ACCEPTED, OFF]),
    (WITH_ADDON_ROLES, ACCEPTED, [SIGNING, ACCEPTED]),
    (WITH_ADDON_ROLES, WITH_ADDON_ROLES, [WITH_ADDON_ROLES]),
    (OFF, OFF, [OFF]),
]


@pytest.mark.parametrize(("deployed", "wanted", "states"), PATHS)
def test_the_way_from_one_state_to_another(deployed: int, wanted: int, states: list[int]) -> None:
    clusters = issuer_stages(issuer_state(parse(FILES[deployed])), parse(FILES[wanted]))
    assert [issuer_state(cluster).stage for cluster in clusters] == states
    assert clusters[-1] == parse(FILES[wanted])


@pytest.mark.parametrize("wanted", FILES)
def test_each_state_on_the_way_is_one_that_a_file_could_say(wanted: int) -> None:
    """With everything that needs the issuer left out where it is not allowed yet."""
    addons = {"addons": {"certManager": {"enabled": True, "zones": ["Z0123456789ABCDEFGHIJ"]}}}
    file = {**FILES[wanted], **(addons if wanted == WITH_ADDON_ROLES else {})}
    for deployed in FILES.values():
        for cluster in issuer_stages(issuer_state(parse(deployed)), parse(file)):
            assert issuer_state(
                parse(cluster.model_dump(mode="json", by_alias=True, exclude_none=True))
            ) == issuer_state(cluster)


def test_an_issuer_that_left_the_file_is_restored_on_the_way() -> None:
    url = {"discovery": "url", "url": "https://tokens.example.com/blue", "bucket": "example-tokens"}
    deployed = issuer_state(parse({"serviceAccountIssuer": url}))
    first, *_others = issuer_stages(deployed, parse({}))
    assert first.service_account_issuer is not None
    assert (first.service_account_issuer.url, first.service_account_issuer.bucket) == (url["url"], url["bucket"])


@pytest.mark.parametrize("stage", FILES)
def test_what_a_template_records_leads_back_to_the_state(stage: int) -> None:
    cluster = parse(FILES[stage])
    assert recorded_state(settings_to_record(cluster)) == issuer_state(cluster)


def test_a_cluster_without_issuer_records_nothing_more() -> None:
    assert state_to_record(parse({})) == {}
    assert recorded_state({}) == IssuerState()
