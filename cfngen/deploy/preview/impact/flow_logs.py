"""The impact of changes of the VPC's flow log and of its log group."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from cfngen.deploy.messages.message import Danger, Impact
from cfngen.deploy.preview.impact.context import ChangeContext

# Two flow logs of one VPC may differ in these ("Publish flow logs to CloudWatch Logs", Amazon VPC User Guide).
_DISTINGUISHING = ("TrafficType", "LogDestination", "LogDestinationType", "LogGroupName", "ResourceId")


def _flow_log_impact(context: ChangeContext) -> Impact | None:
    """Return the impact of a change of the flow log."""
    cluster = context.cluster
    if context.change.action == "add":
        others = ", also those of others in it" if cluster.network.vpc.id else ""
        return Impact(f"connections in the VPC are recorded from now on{others}; each GB of records is billed")
    if context.change.action == "remove":
        return Impact("connections in the VPC are no longer recorded; existing records stay", Danger.DISRUPTIVE)
    if not context.disappears:
        return None
    text = f"the flow log {context.verb}; existing records stay"
    if not context.touches(*_DISTINGUISHING):
        # CloudFormation creates the new one before it deletes the old one.
        return Impact(
            f"{text}. EC2 may refuse the new one while the old one records the same traffic in the same place; then "
            "deploy without network.flowLogs first",
            Danger.DISRUPTIVE,
        )
    return Impact(text)


def _log_group_impact(context: ChangeContext) -> Impact | None:
    """Return the impact of a change of the log group."""
    if context.disappears:
        verb = "leaves the stack" if context.change.action == "remove" else context.verb
        return Impact(
            f"the log group of the flow log {verb}; the old one is kept with its records, and billed until they expire"
        )
    old_days, new_days = context.before("RetentionInDays"), context.after("RetentionInDays")
    if context.change.action == "add" or not context.touches("RetentionInDays"):
        return None
    if str(old_days).isdecimal() and str(new_days).isdecimal() and int(str(new_days)) < int(str(old_days)):
        return Impact(f"records of the flow log that are older than {new_days} days are deleted", Danger.DISRUPTIVE)
    return Impact("records of the flow log are kept for another time from now on")


IMPACT_BY_TYPE: Mapping[str, Callable[[ChangeContext], Impact | None]] = {
    "AWS::EC2::FlowLog": _flow_log_impact,
    "AWS::Logs::LogGroup": _log_group_impact,
}
