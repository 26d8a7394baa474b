"""Instance metadata in every golden case: a pod on the pod network does not get the credentials of its instance's role.

IMDSv2 answers to a token, and the answer with the token travels so many hops (Amazon EC2 User Guide, "Configure the
Instance Metadata Service options"). One hop is the instance itself; a pod with an address of its own is a hop further.
"""

from __future__ import annotations

import pytest
from golden_cases import CASES, load_case

from cfngen.templates import generate


@pytest.mark.drill
def test_metadata_wants_a_token_that_goes_no_further_than_the_instance() -> None:
    options_by_template = {
        (case, document.name, logical_id): resource["Properties"]["LaunchTemplateData"].get("MetadataOptions", {})
        for case in CASES
        for document in generate(load_case(case).cluster)
        for logical_id, resource in document.body["Resources"].items()
        if resource["Type"] == "AWS::EC2::LaunchTemplate"
    }
    assert {case for case, _, _ in options_by_template} == set(CASES)
    reachable_by_pods = {
        name: options
        for name, options in options_by_template.items()
        if (options.get("HttpTokens"), options.get("HttpPutResponseHopLimit")) != ("required", 1)
    }
    assert reachable_by_pods == {}
