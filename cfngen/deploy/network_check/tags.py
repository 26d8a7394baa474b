"""Judges the tags of existing subnets, by which controllers choose subnets for load balancers of services."""

from __future__ import annotations

from collections.abc import Iterator

from cfngen.cluster.naming.tag_keys import INTERNAL_SUBNET_ROLE, SUBNET_ROLES
from cfngen.deploy.deletion.kubernetes_tags import tag_map
from cfngen.deploy.network_check.findings import Finding, Severity, problem, warning
from cfngen.deploy.network_check.situation import Situation
from cfngen.deploy.subnet_tags import find_faults, needed_tags, other_clusters
from cfngen.text import join_and

_TAGGING_KEY = "network.tagExisting"


def find_tag_problems(situation: Situation) -> Iterator[Finding]:
    """Yield a finding for each existing subnet in which controllers would not create load balancers of services.

    With `network.tagExisting`, `cfngen deploy` adds what is missing, so only what keeps it from that is a problem.
    """
    cluster = situation.cluster
    for subnet, described in situation.existing_subnets:
        tags = tag_map(described.get("Tags"))
        needed = needed_tags(cluster, subnet, tags, situation.route_table(subnet))
        missing = {key: value for key, value in needed.items() if key not in tags}
        create_tags = f"aws ec2 create-tags --region {situation.region} --resources {subnet.id} --tags"
        commands = {key: f"{create_tags} Key={key},Value={value}" for key, value in missing.items()}
        if cluster.network.tag_existing:
            faults = find_faults(cluster, subnet, tags, needed)
            for fault in faults:
                remedy = f"correct its tags, or remove {_TAGGING_KEY} and tag the subnets yourself"
                yield problem(subnet.id_key, fault, remedy)
            if missing and not faults:
                names = " and ".join(f"{key} = {value}" for key, value in missing.items())
                yield Finding(
                    Severity.OK,
                    f"the deployment will give {subnet.id} the missing {names}",
                    subnet.id_key,
                    "who creates the stack in the console adds it with",
                    tuple(commands.values()),
                )
            continue
        for key, command in commands.items():
            if key in SUBNET_ROLES:
                kind = "internal" if key == INTERNAL_SUBNET_ROLE else "internet-facing"
                text = f"{subnet.id} has no tag {key}, by which controllers find subnets for {kind} load balancers"
                remedy = f"add it, set {_TAGGING_KEY}, or name the subnets in each service's annotations"
            else:
                others = other_clusters(cluster, tags)
                owners = (
                    f"tag of the cluster {others[0]}"
                    if len(others) == 1
                    else f"tags of the clusters {join_and(others)}"
                )
                text = (
                    f"{subnet.id} has the {owners} and not that of {cluster.name}, so it gets no load balancers of "
                    "services"
                )
                remedy = f"share it with this cluster, or set {_TAGGING_KEY}"
            yield warning(subnet.id_key, text, remedy, command)
