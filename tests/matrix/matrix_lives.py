"""Lives a cluster of a combination in the emulator: created, healthy, unchanged by a second deployment, deleted."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterator
from datetime import timedelta
from functools import partial
from types import SimpleNamespace
from typing import Any, cast

import boto3
from cloud import Cloud
from cluster_objects import install_network_plugin
from clusters import templates_of
from combinations import file_of
from deployed import Place, place
from deployments import ALLOWED, Operator
from dimension_values import Combination
from furnished import Owner
from living import Account, Inventory, _delete

from cfngen.cluster.load import parse
from cfngen.cluster.model import Cluster
from cfngen.deploy.status.derived_status import read_status
from cfngen.deploy.status.validation import validate, wait_until_valid

PATIENCE = timedelta(minutes=5)
"""How long a new cluster may take until it is healthy."""


class _EmulatedAccount(Account):
    """An account in which a public image is registered, with its snapshot, when somebody first asks for it."""

    def inventory(self) -> Inventory:
        of_images = {
            mapping["Ebs"]["SnapshotId"]
            for image in self.cloud.client("ec2").describe_images(Owners=["self"])["Images"]
            for mapping in image["BlockDeviceMappings"]
            if "SnapshotId" in mapping.get("Ebs", {})
        }
        held = super().inventory()
        return {**held, "snapshots": held["snapshots"] - of_images}


@contextlib.contextmanager
def account_in(region: str, name: str) -> Iterator[tuple[Place, Account]]:
    """An account in a region, and somebody who deploys a cluster of this name there."""
    with place(parse({"region": region})) as where:
        session = boto3.Session("AKIAOPERATOROPERATOR", "secret", region_name=region)
        emulated = SimpleNamespace(
            session=session,
            cluster=where.cluster,
            clock=where.clock,
            engine=where.world.cloud,
            account=SimpleNamespace(images={}),
            client=partial(session.client, region_name=region),
        )
        cloud = cast("Cloud", emulated)
        yield where, _EmulatedAccount(cloud, Owner(cloud), Operator(cloud), name)


def live(combination: Combination) -> None:
    """Live the cluster of a combination."""
    file = file_of(combination)
    with account_in(file["region"], file["name"]) as (where, account):
        [cluster] = account.clusters([file])
        before = account.inventory()
        mark = account.mark()
        asked = any("ApiAllowedCidr" in document.body.get("Parameters", {}) for document in templates_of(cluster))
        options: dict[str, Any] = {"flags": ALLOWED if asked else {}}
        created = account.operator.deploy(cluster, **options)
        account.reported += account.operator.messages
        assert created.status == "CREATE_COMPLETE", account.told()
        account.compare_with_plan(mark)
        if cluster.network.plugin == "none":
            install_network_plugin(where.world.cluster(cluster.name))
        _is_healthy(where, account, cluster)
        plan = account.operator.plan(cluster, **options)
        assert plan.changes == ()
        _delete(account, None, Counter(), before)


def _is_healthy(where: Place, account: Account, cluster: Cluster) -> None:
    look = partial(validate, where.account, account.name, cluster, find_url_override=where.override)
    validation = wait_until_valid(look, where.clock, PATIENCE, lambda message: None)
    assert validation.valid, validation.problems
    status = read_status(where.account, account.name, cluster, find_url_override=where.override)
    assert status.stack.status == "CREATE_COMPLETE"
