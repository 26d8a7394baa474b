"""The impact of changes of instances: Auto Scaling groups, launch templates, volumes, roles and key pairs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from cfngen.cluster.logical_ids import MASTER_ROLE
from cfngen.deploy.preview.changes import Danger, Impact
from cfngen.deploy.preview.impact.subject import ChangeContext, number
from cfngen.deploy.stacks import AUTO_SCALING_GROUP
from cfngen.text import join_and

# Properties that cannot be updated, not even by replacement ("updates are not supported", AWS::EC2::Volume, Template
# Reference).
_IMMUTABLE_PROPERTIES = ("AvailabilityZone", "Encrypted", "KmsKeyId", "SnapshotId", "OutpostArn")
# Properties whose change starts a rolling update (UpdatePolicy attribute, AutoScalingRollingUpdate, CloudFormation User
# Guide).
_ROLLING_UPDATE_PROPERTIES = ("LaunchTemplate", "VPCZoneIdentifier", "AvailabilityZones", "MixedInstancesPolicy")

_HOOKS = "LifecycleHookSpecificationList"


def _group_impact(subject: ChangeContext) -> Impact | None:
    """Return the impact of a change of a master's or node group's Auto Scaling group."""
    owner = subject.owner or subject.change.logical_id
    if subject.disappears:
        if subject.is_master:
            return Impact(f"{owner} {subject.verb}: the API is lost with it", Danger.DANGEROUS)
        return Impact(
            f"{owner} {subject.verb} with its instances, all at once; their pods are {_drained_text(subject)} first",
            Danger.DISRUPTIVE,
        )
    if subject.change.action == "add":
        return Impact(f"new {owner}: it joins the existing masters") if subject.is_master else None
    texts: list[tuple[str, Danger]] = []
    if subject.touches(*_ROLLING_UPDATE_PROPERTIES) and subject.instances == 0:
        texts.append((f"{owner} has no instances now; future instances get the new configuration", Danger.NONE))
    elif subject.touches(*_ROLLING_UPDATE_PROPERTIES):
        verb = "is" if subject.certainly_touches(*_ROLLING_UPDATE_PROPERTIES) else "might be"
        if subject.is_master and subject.masters == 1:
            text = (
                f"{owner} {verb} replaced; it is the only master, so the API is unavailable while it boots. "
                "Pods keep running meanwhile"
            )
        elif subject.is_master:
            text = f"{owner} {verb} replaced, one master at a time; the API stays up"
        else:
            verb = "are" if verb == "is" else verb
            text = f"{owner}: its instances {verb} replaced one at a time; pods are {_drained_text(subject)} first"
        texts.append((text, Danger.DISRUPTIVE))
    if subject.touches("VPCZoneIdentifier"):
        texts.append((f"{owner} may launch instances in other subnets, and so in other zones", Danger.NONE))
    if subject.touches(_HOOKS):
        verb = "are drained" if subject.after(_HOOKS) else "are no longer drained"
        texts.append((f"from now on pods of {owner} {verb} before an instance is terminated", Danger.NONE))
    if subject.touches("MinSize", "MaxSize", "DesiredCapacity"):
        text, shrinks = _resize_text(subject, owner, is_only_change=not texts)
        texts.append((text, Danger.DISRUPTIVE if shrinks else Danger.NONE))
    return _join_impacts(texts)


def _join_impacts(texts: Sequence[tuple[str, Danger]]) -> Impact | None:
    """Join several texts into one impact; its `dangerous_part` has those that are not harmless, if some are."""
    if not texts:
        return None
    worst = max((danger for _, danger in texts), key=lambda danger: danger.rank)
    dangerous_texts = [text for text, danger in texts if danger is not Danger.NONE]
    dangerous_part = "; ".join(dangerous_texts) if 0 < len(dangerous_texts) < len(texts) else ""
    return Impact("; ".join(text for text, _ in texts), worst, dangerous_part=dangerous_part)


def _drained_text(subject: ChangeContext) -> str:
    """Return whether instances are drained before they are terminated, by the current hooks of their group."""
    return "drained" if subject.before(_HOOKS) else "not drained"


def _resize_text(subject: ChangeContext, owner: str, *, is_only_change: bool) -> tuple[str, bool]:
    """Return the impact of a change of a group's size, and whether instances may be terminated."""
    old_min, old_max = (number(subject.before(name)) for name in ("MinSize", "MaxSize"))
    new_min, new_max = (number(subject.after(name)) for name in ("MinSize", "MaxSize"))
    if old_min is None or old_max is None or new_min is None or new_max is None:
        return f"{owner} is resized", False
    if (new_min, new_max) == (old_min, old_max):
        desired = subject.after("DesiredCapacity")
        return f"{owner} is set to {desired} instances" if desired else f"{owner} has no desired size any more", True
    verb = (
        "grows"
        if new_min >= old_min and new_max >= old_max
        else "shrinks"
        if new_min <= old_min and new_max <= old_max
        else "changes"
    )
    text = f"{owner} {verb} from {sizes(old_min, old_max)} to {sizes(new_min, new_max)}"
    if new_max < old_max:
        return f"{text}: instances above {new_max} are terminated; their pods are {_drained_text(subject)} first", True
    start_text = f", and {new_min} run at least" if new_min > old_min else ""
    return (
        f"{text}: no instance is replaced{start_text}" if is_only_change else f"it {text.removeprefix(f'{owner} ')}",
        False,
    )


def sizes(min_size: object, max_size: object) -> str:
    """Return the minimum and maximum size of a group as text, e.g. `2-4`, or `2` if they are equal."""
    return f"{min_size}" if str(min_size) == str(max_size) else f"{min_size}-{max_size}"


def _launch_template_impact(subject: ChangeContext) -> Impact | None:
    """Return in what new instances will differ; running instances are replaced by their group's update, if at all."""
    if subject.change.action != "update":
        return None
    if subject.disappears:
        return Impact("a new launch template replaces it, and its group uses the new one")
    data_key = "LaunchTemplateData"
    changed = {property_.path.split("/")[3] for property_ in subject.change.properties if property_.path.count("/") > 2}
    instance_type = subject.after(data_key, "InstanceType")
    image = subject.after(data_key, "ImageId")
    size = subject.after(data_key, "BlockDeviceMappings", "0", "Ebs", "VolumeSize")
    is_resized = any(property_.path.endswith("/Ebs/VolumeSize") for property_ in subject.change.properties)
    labels = {
        "InstanceType": f"type {instance_type}" if instance_type else "another type",
        "ImageId": f"the image {image}" if image else "another image",
        "BlockDeviceMappings": f"root volumes of {size} GiB" if size and is_resized else "other root volumes",
        "UserData": "another boot program or configuration",
        "IamInstanceProfile": "another instance profile",
        "NetworkInterfaces": "other network settings",
        "InstanceMarketOptions": "spot pricing, so AWS may reclaim them at any time"
        if any(
            property_.path.endswith("/InstanceMarketOptions") and property_.after
            for property_ in subject.change.properties
        )
        else "another purchase option (spot or on demand)",
        "KeyName": "another SSH key",
        "MetadataOptions": "other metadata settings",
        "TagSpecifications": "other tags",
    }
    differences = [labels[name] for name in labels if name in changed]
    if not differences:
        return Impact("new instances are launched with other settings")
    return Impact(f"new instances have {join_and(differences)}")


def _volume_impact(subject: ChangeContext) -> Impact | None:
    """Return the impact of a change of a master's data volume, which holds etcd."""
    if not subject.disappears:
        return _volume_update_impact(subject)
    old_volume_text = {
        "snapshot": "only a snapshot of the old volume is kept",
        "retain": "the old volume is kept, unattached",
        "delete": "the old volume is deleted for good",
    }.get(subject.change.policy, "CloudFormation does not say what happens to the old volume")
    if subject.change.action == "remove":
        text = (
            f"the data volume of {subject.owner or 'a master'} is removed: its data (etcd) would be LOST to the cluster"
        )
    else:
        text = (
            f"the data volume of {subject.owner or 'a master'} {subject.verb}: its data (etcd) would be LOST to the "
            "cluster, and the master refuses to start with an empty volume"
        )
    return Impact(f"{text}; {old_volume_text}", Danger.DANGEROUS)


def _volume_update_impact(subject: ChangeContext) -> Impact | None:
    if subject.change.action != "update":
        return None
    volume = f"the data volume of {subject.owner or 'a master'}"
    if subject.touches(*_IMMUTABLE_PROPERTIES):
        return Impact(
            f"{volume} would change in a way that AWS refuses: the update fails", Danger.DISRUPTIVE, fails=True
        )
    old, new = number(subject.before("Size")), number(subject.after("Size"))
    # "Request modifications to your EBS volumes", EC2 User Guide: a volume never gets smaller, stays in use meanwhile,
    # and cannot be modified again for some hours.
    in_place_text = "in place, while it is in use; after that AWS allows no further change for about six hours"
    if subject.touches("Size") and old is not None and new is not None:
        if new < old:
            return Impact(
                f"{volume} would shrink from {old} to {new} GiB: AWS refuses that, and the update fails",
                Danger.DISRUPTIVE,
                fails=True,
            )
        return Impact(
            f"{volume} grows from {old} to {new} GiB {in_place_text}; its file system follows at the master's next boot"
        )
    if subject.touches("VolumeType", "Iops", "Throughput"):
        volume_type = subject.after("VolumeType")
        return Impact(
            f"{volume} becomes {volume_type} {in_place_text}"
            if subject.touches("VolumeType") and volume_type
            else f"{volume} changes {in_place_text}"
        )
    return None


def _role_impact(subject: ChangeContext) -> Impact | None:
    role_id = subject.change.logical_id
    if subject.owner:
        users = f"the nodes of {subject.owner}"
    else:
        users = "the masters" if role_id == MASTER_ROLE else "the nodes"
    if subject.disappears:
        return Impact(f"permissions: the role of {users} {subject.verb}", Danger.DISRUPTIVE)
    if subject.change.action == "add":
        return None
    if subject.touches("Policies", "ManagedPolicyArns", "PermissionsBoundary", "AssumeRolePolicyDocument"):
        return Impact(f"permissions of {users} change at once")
    return None


def _key_pair_impact(subject: ChangeContext) -> Impact | None:
    if subject.change.action == "remove":
        return Impact("the SSH key pair is removed; running instances keep the key")
    return (
        Impact(f"the SSH key pair {subject.verb}; instances get it when they are replaced")
        if subject.disappears
        else None
    )


RULES: Mapping[str, Callable[[ChangeContext], Impact | None]] = {
    AUTO_SCALING_GROUP: _group_impact,
    "AWS::EC2::KeyPair": _key_pair_impact,
    "AWS::EC2::LaunchTemplate": _launch_template_impact,
    "AWS::EC2::Volume": _volume_impact,
    "AWS::IAM::Role": _role_impact,
}
