"""The cluster file in a living stack: it is replaced without a change of anything else, alone or with other changes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from cloud import Cloud
from clusters import running_instances, templates_of
from deployments import Operator, groups

from cfngen.cluster.load import parse
from cfngen.deploy.aws.kept_file import FileChange, NoKeptFileError, read_deployed_file
from cfngen.deploy.aws.stacks import list_resource_tree, require_root_stack
from cfngen.deploy.plan.plan import Plan
from cfngen.templates.kept_file import with_cluster_file

ONE: Mapping[str, Any] = {"name": "one", "nodeGroups": groups("general", "work", minSize=1, maxSize=1)}
CHANGED = {**ONE, "nodeGroups": groups("general", "work", minSize=1, maxSize=1, instanceType="m5.large")}


@pytest.fixture
def operator(cloud: Cloud) -> Operator:
    return Operator(cloud)


def keeping(text: str, file: Mapping[str, Any] = ONE) -> dict[str, Any]:
    """What is deployed of a cluster whose file has this text."""
    return {"cluster": file, "documents": with_cluster_file(templates_of(parse(dict(file))), text.encode())}


def kept(operator: Operator) -> str:
    account = operator.account
    return read_deployed_file(account, require_root_stack(account, "one")).content


def resources(operator: Operator) -> dict[str, str]:
    """Physical ids of all resources but the handle beside the cluster file."""
    root = require_root_stack(operator.account, "one")
    views = [resource.view for resource in list_resource_tree(operator.account, root.id) if resource.exists]
    return {view.logical_id: view.physical_id for view in views if not view.logical_id.startswith("ClusterFile")}


def changed(plan: Plan) -> set[str]:
    return {change.logical_id for change in plan.changes}


def test_other_comments_replace_the_file_and_nothing_else(operator: Operator) -> None:
    operator.deploy(**keeping("name: one # 1\n"))
    before, instances = resources(operator), set(running_instances(operator.cloud.cluster.region))
    plan = operator.plan(**keeping("name: one # 2\n"))
    assert (plan.is_empty, plan.templates_only, plan.stacks, plan.phases) == (False, True, (), ())
    assert plan.file_change == FileChange((), first=False)
    assert plan.counts.total == 0
    assert not plan.is_dangerous
    finished = operator.deploy(**keeping("name: one # 2\n"))
    assert (finished.action, finished.status) == ("update", "UPDATE_COMPLETE")
    assert kept(operator) == "name: one # 2\n"
    assert (resources(operator), set(running_instances(operator.cloud.cluster.region))) == (before, instances)
    assert operator.plan(**keeping("name: one # 2\n")).is_empty


def test_it_makes_no_phase_of_an_update(operator: Operator) -> None:
    """The root keeps the new file from the first phase on: deployed again, it continues what has failed."""
    operator.deploy(**keeping("name: one # 1\n"))
    with_file, without = (
        operator.plan(**wanted) for wanted in (keeping("name: one # 2\n", CHANGED), keeping("name: one # 1\n", CHANGED))
    )
    assert [phase.groups for phase in with_file.phases] == [phase.groups for phase in without.phases]
    assert [phase.kind for phase in with_file.phases] == ["node-groups", "node-groups"]
    assert changed(with_file) == changed(without)
    assert (with_file.file_change is None, without.file_change) == (False, None)


def test_a_stack_that_keeps_none_gets_it(operator: Operator) -> None:
    operator.deploy(ONE)
    with pytest.raises(NoKeptFileError, match=r"name: one; region: us-west-2; .*kubernetesVersion: 1"):
        kept(operator)
    plan = operator.plan(**keeping("name: one\n"))
    assert (plan.is_empty, plan.file_change) == (False, FileChange((), first=True))
    operator.deploy(**keeping("name: one\n"))
    assert kept(operator) == "name: one\n"
