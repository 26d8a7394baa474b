"""The impact of changes of the API's DNS name: its records, and hosted zones that are created for them."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from cfngen.deploy.messages.message import Danger, Impact
from cfngen.deploy.preview.impact.context import ChangeContext


def _endpoint(context: ChangeContext) -> str:
    """Return which endpoint the record leads to, in words."""
    return "internal endpoint" if context.change.logical_id == "ApiPrivateRecord" else "public endpoint"


def _record_impact(context: ChangeContext) -> Impact | None:
    """Return the impact of a change of a DNS record of the API."""
    old_name, new_name = context.before("Name"), context.after("Name")
    endpoint = _endpoint(context)
    if context.change.action == "add":
        return Impact(
            f"the API's {endpoint} gets the name {new_name or 'of api.dns'}: fetch kubeconfigs again to use it; the "
            "masters are replaced one after another, for the name in their certificate",
            Danger.DISRUPTIVE,
        )
    if context.change.action == "remove":
        return Impact(
            f"the name {old_name or 'of the API'} no longer leads to its {endpoint}; kubeconfigs with the name stop "
            "working: fetch them again",
            Danger.DANGEROUS,
        )
    if context.touches("Name"):
        renamed = f" from {old_name} to {new_name}" if old_name and new_name else ""
        return Impact(
            f"the name of the API's {endpoint} changes{renamed}; kubeconfigs with the old name stop working: fetch "
            "them again; the masters are replaced one after another, for the new name in their certificate",
            Danger.DANGEROUS,
        )
    if context.disappears:
        return Impact(
            f"the record of the API's {endpoint} moves to another hosted zone; clients find it if they resolve names "
            "there",
            Danger.DISRUPTIVE,
        )
    if context.touches("AliasTarget", "ResourceRecords"):
        return Impact(
            f"the API's name leads to another address of its {endpoint}; clients may use the old one for 60 seconds "
            "(the record's TTL)",
            Danger.DISRUPTIVE,
        )
    return None


def _zone_impact(context: ChangeContext) -> Impact | None:
    """Return the impact of a change of a hosted zone that the cluster's stack created."""
    is_public = context.change.logical_id == "ApiPublicZone"
    if context.change.action == "add":
        if not is_public:
            return None
        return Impact(
            "a new public zone: nobody finds the names in it until its parent domain has an NS record with the name "
            "servers in the stack's output ApiNameServers",
            Danger.DISRUPTIVE,
        )
    if not context.disappears:
        return None
    if is_public:
        verb = "leaves the stack" if context.change.action == "remove" else context.verb
        return Impact(
            f"the public zone of the API's name {verb}; the old zone is kept with its other records, and billed",
            Danger.DANGEROUS,
        )
    return Impact(
        f"the private zone of the API's name {context.verb}; Route 53 deletes a zone only if it has no records of "
        "others, such as external-dns",
        Danger.DANGEROUS,
    )


IMPACT_BY_TYPE: Mapping[str, Callable[[ChangeContext], Impact | None]] = {
    "AWS::Route53::HostedZone": _zone_impact,
    "AWS::Route53::RecordSet": _record_impact,
}
