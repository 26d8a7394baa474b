"""What changes of instances mean: their groups, launch templates, volumes, addresses and rights."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from cfngen.deploy.preview.impact.subject import Subject, number
from cfngen.deploy.preview.plan import Danger, Impact
from cfngen.deploy.stacks import GROUP
from cfngen.text import join_and

# Template reference, AWS::EC2::Volume: "updates are not supported", in place or by replacement.
_IMMUTABLE_PROPERTIES = ("AvailabilityZone", "Encrypted", "KmsKeyId", "SnapshotId", "OutpostArn")
# A change of these makes a rolling update: CloudFormation user guide, UpdatePolicy attribute, AutoScalingRollingUpdate.
_ROLLING_UPDATE_PROPERTIES = ("LaunchTemplate", "VPCZoneIdentifier", "AvailabilityZones", "MixedInstancesPolicy")

_HOOKS = "LifecycleHookSpecificationList"


def _group(subject: Subject) -> Impact | None:
    whose = subject.whose or subject.change.logical_id
    if subject.goes:
        if subject.master:
            return Impact(f"{whose} {subject.going}: the API is lost with it", Danger.DANGEROUS)
        return Impact(
            f"{whose} {subject.going} with its instances, all at once; their pods are {_drained(subject)} first",
            Danger.DISRUPTIVE,
        )
    if subject.change.action == "add":
        return Impact(f"new {whose}: it joins those that are there") if subject.master else None
    texts: list[tuple[str, Danger]] = []
    if subject.touches(*_ROLLING_UPDATE_PROPERTIES) and subject.instances == 0:
        texts.append(
            (f"{whose} has no instance now; those that it launches from now on are of the new kind", Danger.NONE)
        )
    elif subject.touches(*_ROLLING_UPDATE_PROPERTIES):
        verb = "is" if subject.certain(*_ROLLING_UPDATE_PROPERTIES) else "might be"
        if subject.master and subject.masters == 1:
            text = (
                f"{whose} {verb} replaced; it is the only one, so the API is away for the minutes of its boot. "
                "Pods keep running meanwhile"
            )
        elif subject.master:
            text = f"{whose} {verb} replaced, one master at a time; the API stays up"
        else:
            verb = "are" if verb == "is" else verb
            text = f"{whose}: its instances {verb} replaced one at a time; pods are {_drained(subject)} first"
        texts.append((text, Danger.DISRUPTIVE))
    if subject.touches("VPCZoneIdentifier"):
        texts.append((f"{whose} may launch instances in other subnets, and so in other zones", Danger.NONE))
    if subject.touches(_HOOKS):
        verb = "are drained" if subject.after(_HOOKS) else "are no longer drained"
        texts.append((f"from now on pods of {whose} {verb} before an instance is terminated", Danger.NONE))
    if subject.touches("MinSize", "MaxSize", "DesiredCapacity"):
        text, shrinks = _resized(subject, whose, alone=not texts)
        texts.append((text, Danger.DISRUPTIVE if shrinks else Danger.NONE))
    return _joined(texts)


def _joined(texts: Sequence[tuple[str, Danger]]) -> Impact | None:
    """Return one meaning of several, of which those that hurt nobody are not told where it is said what hurts."""
    if not texts:
        return None
    danger = max((each for _, each in texts), key=lambda each: each.rank)
    hurting = [text for text, each in texts if each is not Danger.NONE]
    hurts = "; ".join(hurting) if 0 < len(hurting) < len(texts) else ""
    return Impact("; ".join(text for text, _ in texts), danger, hurts=hurts)


def _drained(subject: Subject) -> str:
    """Return whether pods are drained before an instance goes: by those that run now, which are told by their group."""
    return "drained" if subject.before(_HOOKS) else "not drained"


def _resized(subject: Subject, whose: str, *, alone: bool) -> tuple[str, bool]:
    """Return what a change of a group's sizes means, and whether instances may go."""
    old_min, old_max = (number(subject.before(name)) for name in ("MinSize", "MaxSize"))
    new_min, new_max = (number(subject.after(name)) for name in ("MinSize", "MaxSize"))
    if old_min is None or old_max is None or new_min is None or new_max is None:
        return f"{whose} is resized", False
    if (new_min, new_max) == (old_min, old_max):
        desired = subject.after("DesiredCapacity")
        return f"{whose} is set to {desired} instances" if desired else f"{whose} chooses its size by itself", True
    verb = (
        "grows"
        if new_min >= old_min and new_max >= old_max
        else "shrinks"
        if new_min <= old_min and new_max <= old_max
        else "changes"
    )
    text = f"{whose} {verb} from {sizes(old_min, old_max)} to {sizes(new_min, new_max)}"
    if new_max < old_max:
        return f"{text}: instances above {new_max} are terminated; their pods are {_drained(subject)} first", True
    started = f", and {new_min} run at least" if new_min > old_min else ""
    return f"{text}: no instance is replaced{started}" if alone else f"it {text.removeprefix(f'{whose} ')}", False


def sizes(min_size: Any, max_size: Any) -> str:
    """Return the sizes of a group as a person writes them, e.g. `2-4`."""
    return f"{min_size}" if str(min_size) == str(max_size) else f"{min_size}-{max_size}"


def _launch_template(subject: Subject) -> Impact | None:
    if subject.change.action != "update":
        return None
    if subject.goes:
        return Impact("a new launch template takes its place; its group follows")
    data = "LaunchTemplateData"
    changed = {property_.path.split("/")[3] for property_ in subject.change.properties if property_.path.count("/") > 2}
    kind = subject.after(data, "InstanceType")
    image = subject.after(data, "ImageId")
    size = subject.after(data, "BlockDeviceMappings", "0", "Ebs", "VolumeSize")
    resized = any(property_.path.endswith("/Ebs/VolumeSize") for property_ in subject.change.properties)
    labels = {
        "InstanceType": f"type {kind}" if kind else "another type",
        "ImageId": f"the image {image}" if image else "another image",
        "BlockDeviceMappings": f"root volumes of {size} GiB" if size and resized else "other root volumes",
        "UserData": "another boot program or configuration",
        "IamInstanceProfile": "another instance profile",
        "NetworkInterfaces": "other network settings",
        "InstanceMarketOptions": "the spot market, from which AWS may take them back at any time"
        if any(
            property_.path.endswith("/InstanceMarketOptions") and property_.after
            for property_ in subject.change.properties
        )
        else "another way of paying (spot or on demand)",
        "KeyName": "another SSH key",
        "MetadataOptions": "other metadata settings",
        "TagSpecifications": "other tags",
    }
    differences = [labels[name] for name in labels if name in changed]
    if not differences:
        return Impact("new instances are launched otherwise")
    return Impact(f"new instances have {join_and(differences)}")


def _volume(subject: Subject) -> Impact | None:
    if not subject.goes:
        return _volume_in_place(subject)
    leftover = {
        "snapshot": "only a snapshot of the old volume stays",
        "retain": "the old volume stays, in use by nobody",
        "delete": "the old volume is deleted for good",
    }.get(subject.change.policy, "what becomes of the old volume is not told")
    if subject.change.action == "remove":
        text = (
            f"the data volume of {subject.whose or 'a master'} is removed: its data (etcd) would be LOST to the cluster"
        )
    else:
        text = (
            f"the data volume of {subject.whose or 'a master'} {subject.going}: its data (etcd) would be LOST to the "
            "cluster, and the master refuses to begin again on an empty volume"
        )
    return Impact(f"{text}; {leftover}", Danger.DANGEROUS)


def _volume_in_place(subject: Subject) -> Impact | None:
    if subject.change.action != "update":
        return None
    whose = f"the data volume of {subject.whose or 'a master'}"
    if subject.touches(*_IMMUTABLE_PROPERTIES):
        return Impact(
            f"{whose} would change in a way that AWS refuses: the update fails", Danger.DISRUPTIVE, fails=True
        )
    old, new = number(subject.before("Size")), number(subject.after("Size"))
    # EC2 user guide, "Request modifications to your EBS volumes": never smaller, in use all the while, then a pause.
    pause = "in place, while it is in use; after that AWS allows no further change for about six hours"
    if subject.touches("Size") and old is not None and new is not None:
        if new < old:
            return Impact(
                f"{whose} would shrink from {old} to {new} GiB: AWS refuses that, and the update fails",
                Danger.DISRUPTIVE,
                fails=True,
            )
        return Impact(
            f"{whose} grows from {old} to {new} GiB {pause}; its file system follows at the master's next boot"
        )
    if subject.touches("VolumeType", "Iops", "Throughput"):
        kind = subject.after("VolumeType")
        return Impact(
            f"{whose} becomes {kind} {pause}" if subject.touches("VolumeType") and kind else f"{whose} changes {pause}"
        )
    return None


def _role(subject: Subject) -> Impact | None:
    name = subject.change.logical_id
    whose = subject.whose or ("masters" if name.startswith("Master") else "nodes")
    whose = f"the nodes of {subject.whose}" if subject.whose else f"the {whose}"
    if subject.goes:
        return Impact(f"permissions: the role of {whose} {subject.going}", Danger.DISRUPTIVE)
    if subject.change.action == "add":
        return None
    if subject.touches("Policies", "ManagedPolicyArns", "PermissionsBoundary", "AssumeRolePolicyDocument"):
        return Impact(f"permissions of {whose} change at once")
    return None


def _key_pair(subject: Subject) -> Impact | None:
    if subject.change.action == "remove":
        return Impact("the SSH key pair is removed; running instances keep the key")
    return (
        Impact(f"the SSH key pair {subject.going}; instances get it when they are replaced") if subject.goes else None
    )


RULES: Mapping[str, Callable[[Subject], Impact | None]] = {
    GROUP: _group,
    "AWS::EC2::KeyPair": _key_pair,
    "AWS::EC2::LaunchTemplate": _launch_template,
    "AWS::EC2::Volume": _volume,
    "AWS::IAM::Role": _role,
}
