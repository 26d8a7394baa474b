"""The impact of changes of instances: Auto Scaling groups, launch templates, volumes, roles and key pairs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import permutations

from cfngen.cluster.instances.rolling_updates import QUORUM_WAIT_MINUTES, batch_timeout, rolling_update
from cfngen.cluster.naming.id_form import pascal
from cfngen.cluster.naming.logical_ids import FLOW_LOG_ROLE, MASTER_ROLE, NodeGroupId
from cfngen.cluster.sections.instances import NodeGroup
from cfngen.deploy.aws.stacks import AUTO_SCALING_GROUP
from cfngen.deploy.messages.message import Danger, Impact
from cfngen.deploy.plan.impact.capacity import (
    autoscaler_text,
    capacity_texts,
    consequence_of_architecture,
    consequences_of_types,
    override_types,
)
from cfngen.deploy.plan.impact.context import ChangeContext, number_if_decimal
from cfngen.text import join_and, pluralize
from cfngen.userdata.changed_parts import ADDON, ARCHITECTURE_CHANGE, PROGRAM_CHANGES, UNKNOWN_CHANGE

# Properties of a volume that cannot be updated, not even by replacement ("updates are not supported",
# AWS::EC2::Volume, Template Reference).
_IMMUTABLE_VOLUME_PROPERTIES = ("AvailabilityZone", "Encrypted", "KmsKeyId", "SnapshotId", "OutpostArn")
# Properties of an Auto Scaling group whose change starts a rolling update (UpdatePolicy attribute,
# AutoScalingRollingUpdate, CloudFormation User Guide).
_ROLLING_UPDATE_PROPERTIES = ("LaunchTemplate", "VPCZoneIdentifier", "AvailabilityZones", "MixedInstancesPolicy")

# What masters do about add-ons (`cfngen.boot.master.addons`).
_ADDONS_TEXT = "a new master applies the add-ons to the cluster; no node is replaced for them"
_LIFECYCLE_HOOKS = "LifecycleHookSpecificationList"  # property of an Auto Scaling group


def _group_impact(context: ChangeContext) -> Impact | None:
    owner = context.owner or context.change.logical_id
    if context.disappears:
        if context.is_master:
            return Impact(f"{owner} {context.verb}: the API is lost with it", Danger.DANGEROUS)
        return Impact(
            f"{owner} {context.verb} with its instances, all at once; their pods are {_drained_text(context)} first",
            Danger.DISRUPTIVE,
        )
    if context.change.action == "add":
        return Impact(f"new {owner}: it joins the existing masters") if context.is_master else None
    return _group_update_impact(context, owner)


def _group_update_impact(context: ChangeContext, owner: str) -> Impact | None:
    impacts: list[tuple[str, Danger]] = []  # sentences, each with its danger
    if context.touches(*_ROLLING_UPDATE_PROPERTIES) and context.instance_count == 0:
        impacts.append((f"{owner} has no instances now; future instances get the new configuration", Danger.NONE))
    elif context.touches(*_ROLLING_UPDATE_PROPERTIES):
        is_certain = context.certainly_touches(*_ROLLING_UPDATE_PROPERTIES)
        verb = "is" if is_certain else "might be"
        if context.is_master and context.master_count == 1:
            text = (
                f"{owner} {verb} replaced; it is the only master, so the API is unavailable while it boots. "
                "Pods keep running meanwhile"
            )
        elif context.is_master:
            text = f"{owner} {verb} replaced, one master at a time; the API stays up while the others work"
        else:
            plural_verb = "are" if is_certain else "might be"
            text = (
                f"{owner}: its instances {plural_verb} replaced {pace(context)}; pods are "
                f"{_drained_text(context)} first"
            )
        impacts.append((text, Danger.DISRUPTIVE))
    impacts += [(text, Danger.NONE) for text in capacity_texts(context, owner)]
    texts = consequences_of_types(context.cluster, owner, *override_types(context))
    impacts += [(text, Danger.DISRUPTIVE) for text in texts]
    if context.touches("VPCZoneIdentifier"):
        impacts.append((f"{owner} may launch instances in other subnets, and so in other zones", Danger.NONE))
    if context.touches(_LIFECYCLE_HOOKS):
        impacts.append((_termination_text(context, owner), Danger.NONE))
    if text := autoscaler_text(context, owner):
        impacts.append((text, Danger.NONE))
    if context.touches("MinSize", "MaxSize", "DesiredCapacity"):
        text, may_terminate_instances = _resize_text(context, owner, is_only_change=not impacts)
        impacts.append((text, Danger.DISRUPTIVE if may_terminate_instances else Danger.NONE))
    return _join_impacts(impacts)


def _join_impacts(impacts: Sequence[tuple[str, Danger]]) -> Impact | None:
    """Join texts, each with its danger, into one impact; None if there are none.

    If harmless and dangerous texts are mixed, `dangerous_part` has only the dangerous texts.
    """
    if not impacts:
        return None
    worst_danger = max((danger for _, danger in impacts), key=lambda danger: danger.rank)
    dangerous_texts = [text for text, danger in impacts if danger is not Danger.NONE]
    is_mixed = 0 < len(dangerous_texts) < len(impacts)
    return Impact(
        "; ".join(text for text, _ in impacts),
        worst_danger,
        dangerous_part="; ".join(dangerous_texts) if is_mixed else "",
    )


def _termination_text(context: ChangeContext, owner: str) -> str:
    """Return what an instance does before it is terminated from now on, by the lifecycle hook of its group."""
    has_hook = bool(context.after(_LIFECYCLE_HOOKS))
    if context.is_master:
        verb = f"waits up to {QUORUM_WAIT_MINUTES} minutes" if has_hook else "no longer waits"
        return f"from now on {owner} {verb} before it is terminated while etcd would lose its quorum with it"
    verb = "are drained" if has_hook else "are no longer drained"
    return f"from now on pods of {owner} {verb} before an instance is terminated"


def _drained_text(context: ChangeContext) -> str:
    """Return `drained` if the group currently has a lifecycle hook that drains instances; else `not drained`."""
    return "drained" if context.before(_LIFECYCLE_HOOKS) else "not drained"


def _resize_text(context: ChangeContext, owner: str, *, is_only_change: bool) -> tuple[str, bool]:
    """Return the impact of a change of an Auto Scaling group's size, and whether instances may be terminated."""
    old_min, old_max = (number_if_decimal(context.before(name)) for name in ("MinSize", "MaxSize"))
    new_min, new_max = (number_if_decimal(context.after(name)) for name in ("MinSize", "MaxSize"))
    if old_min is None or old_max is None or new_min is None or new_max is None:
        return f"{owner} is resized", False
    if (new_min, new_max) == (old_min, old_max):
        desired = number_if_decimal(context.after("DesiredCapacity"))
        if desired is None:
            return f"{owner} has no desired size any more", True
        return f"{owner} is set to {pluralize(desired, 'instance')}", True
    if new_min >= old_min and new_max >= old_max:
        verb = "grows"
    elif new_min <= old_min and new_max <= old_max:
        verb = "shrinks"
    else:
        verb = "changes"
    text = f"{owner} {verb} from {size_range(old_min, old_max)} to {size_range(new_min, new_max)}"
    if new_max < old_max:
        return f"{text}: instances above {new_max} are terminated; their pods are {_drained_text(context)} first", True
    start_text = f", and {new_min} run at least" if new_min > old_min else ""
    if is_only_change:
        return f"{text}: no instance is replaced{start_text}", False
    # Several impacts are joined, and an earlier text names the owner already.
    return f"it {text.removeprefix(f'{owner} ')}", False


def size_range(min_size: object, max_size: object) -> str:
    """Return the minimum and maximum size of a group as text, e.g. `2-4`, or `2` if they are equal."""
    return f"{min_size}" if str(min_size) == str(max_size) else f"{min_size}-{max_size}"


def _launch_template_impact(context: ChangeContext) -> Impact | None:
    """Return how new instances will differ from the current ones; the group's own change replaces running instances."""
    if context.change.action != "update":
        return None
    if context.disappears:
        return Impact("a new launch template replaces it, and its group uses the new one")
    data_key = "LaunchTemplateData"
    # Paths are e.g. `/Properties/LaunchTemplateData/InstanceType`.
    changed_names = {
        property_.path.split("/")[3] for property_ in context.change.properties if property_.path.count("/") > 2
    }
    instance_type = context.after(data_key, "InstanceType")
    image = context.after(data_key, "ImageId")
    becomes_spot = any(
        property_.path.endswith("/InstanceMarketOptions") and property_.after for property_ in context.change.properties
    )
    if becomes_spot:
        purchase_option = "spot pricing, so AWS may reclaim them at any time"
    else:
        purchase_option = "another purchase option (spot or on demand)"
    labels = {
        "InstanceType": f"type {instance_type}" if instance_type else "another type",
        "ImageId": f"the image {image}" if image else "another image",
        "BlockDeviceMappings": _volume_difference(context, f"{data_key}/BlockDeviceMappings"),
        "UserData": _configuration_difference(context),
        "IamInstanceProfile": "another instance profile",
        "NetworkInterfaces": "other network settings",
        "InstanceMarketOptions": purchase_option,
        "CapacityReservationSpecification": "another capacity reservation, or none",
        "KeyName": "another SSH key",
        "MetadataOptions": "other metadata settings",
        "TagSpecifications": "other tags",
    }
    differences = [label for name, label in labels.items() if name in changed_names]
    if not differences:
        return Impact("new instances are launched with other settings")
    return _join_impacts(
        [
            (f"new instances have {join_and(differences)}", Danger.NONE),
            *((text, Danger.DISRUPTIVE) for text in _consequences_of_type(context)),
            *([(_ADDONS_TEXT, Danger.NONE)] if ADDON in _user_data_note(context) else []),
        ]
    )


def _consequences_of_type(context: ChangeContext) -> Iterator[str]:
    """Yield what other instances mean for pods: by their types, else by the programs that they download."""
    owner = context.owner or context.change.logical_id
    old_type, new_type = (
        value_of("LaunchTemplateData", "InstanceType") for value_of in (context.before, context.after)
    )
    if old_type and new_type:
        yield from consequences_of_types(context.cluster, owner, [str(old_type)], [str(new_type)])
        return
    for old, new in permutations(("amd64", "arm64")):
        if ARCHITECTURE_CHANGE.format(old=old, new=new) in _user_data_note(context):
            yield consequence_of_architecture(owner, old, new)


def _user_data_note(context: ChangeContext) -> str:
    """Return what changes in the user data, in words; empty if nothing does."""
    return next((property_.note for property_ in context.change.properties if property_.path.endswith("/UserData")), "")


def _configuration_difference(context: ChangeContext) -> str:
    """Return how the user data of new instances differs."""
    note = _user_data_note(context)
    if note in ("", UNKNOWN_CHANGE):
        return "another boot program or configuration"
    if note.startswith(PROGRAM_CHANGES):
        return "another boot program"
    return "another boot program and configuration" if PROGRAM_CHANGES in note else "another configuration"


def _volume_difference(context: ChangeContext, key: str) -> str:
    """Return how the volumes of new instances differ; the root volume is the first block device mapping."""
    prefix = f"/Properties/{key}"
    paths = [property_.path for property_ in context.change.properties if property_.path.startswith(prefix)]
    if context.is_master or not _has_further_volumes(context, key):
        return _root_volume_difference(context, key, paths)
    root_paths = [path for path in paths if path.startswith(f"{prefix}/0/") or path == f"{prefix}/0"]
    differences = [_root_volume_difference(context, key, root_paths)] if root_paths else []
    if len(root_paths) < len(paths):
        differences.append(
            "different further volumes (empty ones: what is on those of a replaced node is deleted with it)"
        )
    return join_and(differences)


def _has_further_volumes(context: ChangeContext, key: str) -> bool:
    mappings = (context.before(*key.split("/")), context.after(*key.split("/")))
    return any(isinstance(value, list) and len(value) > 1 for value in mappings)


def _root_volume_difference(context: ChangeContext, key: str, paths: Sequence[str]) -> str:
    """Return how root volumes of new instances differ, given the paths of what changes of them."""
    size = context.after(*key.split("/"), "0", "Ebs", "VolumeSize")
    is_resized = any(path.endswith("/Ebs/VolumeSize") for path in paths)
    return f"root volumes of {size} GiB" if size and is_resized else "other root volumes"


def _volume_impact(context: ChangeContext) -> Impact | None:
    """Return the impact of a change of a master's data volume, which contains etcd's data."""
    if not context.disappears:
        return _volume_update_impact(context)
    old_volume_text = {
        "snapshot": "only a snapshot of the old volume is kept",
        "retain": "the old volume is kept, unattached",
        "delete": "the old volume is deleted for good",
    }.get(context.change.policy, "CloudFormation does not say what happens to the old volume")
    if context.change.action == "remove":
        text = (
            f"the data volume of {context.owner or 'a master'} is removed: its data (etcd) would be LOST to the cluster"
        )
    else:
        text = (
            f"the data volume of {context.owner or 'a master'} {context.verb}: its data (etcd) would be LOST to the "
            "cluster, and the master refuses to start with an empty volume"
        )
    return Impact(f"{text}; {old_volume_text}", Danger.DANGEROUS)


def _volume_update_impact(context: ChangeContext) -> Impact | None:
    if context.change.action != "update":
        return None
    volume = f"the data volume of {context.owner or 'a master'}"
    if context.touches(*_IMMUTABLE_VOLUME_PROPERTIES):
        return Impact(
            f"{volume} would change in a way that AWS refuses: the update fails", Danger.DISRUPTIVE, fails=True
        )
    old_size, new_size = number_if_decimal(context.before("Size")), number_if_decimal(context.after("Size"))
    # "Request modifications to your EBS volumes", EC2 User Guide: a volume never gets smaller, stays in use meanwhile,
    # and cannot be modified again for some hours.
    in_place_text = "in place, while it is in use; after that AWS allows no further change for about six hours"
    if context.touches("Size") and old_size is not None and new_size is not None:
        if new_size < old_size:
            return Impact(
                f"{volume} would shrink from {old_size} to {new_size} GiB: AWS refuses that, and the update fails",
                Danger.DISRUPTIVE,
                fails=True,
            )
        return Impact(
            f"{volume} grows from {old_size} to {new_size} GiB {in_place_text}; its file system follows at the "
            "master's next boot"
        )
    if context.touches("VolumeType", "Iops", "Throughput"):
        volume_type = context.after("VolumeType")
        if context.touches("VolumeType") and volume_type:
            return Impact(f"{volume} becomes {volume_type} {in_place_text}")
        return Impact(f"{volume} changes {in_place_text}")
    return None


def _role_impact(context: ChangeContext) -> Impact | None:
    if context.owner:
        users = f"the nodes of {context.owner}"
    else:
        role_users = {MASTER_ROLE: "the masters", FLOW_LOG_ROLE: "the flow log"}
        users = role_users.get(context.change.logical_id, "the nodes")
    if context.disappears:
        return Impact(f"permissions: the role of {users} {context.verb}", Danger.DISRUPTIVE)
    if context.change.action == "add":
        return None
    if context.touches("Policies", "ManagedPolicyArns", "PermissionsBoundary", "AssumeRolePolicyDocument"):
        return Impact(f"permissions of {users} change at once")
    return None


def _instance_profile_impact(context: ChangeContext) -> Impact | None:
    """Return the impact of another role in an instance profile; running instances get its credentials later."""
    # "You must then wait for the change to appear across all of AWS because of eventual consistency"
    # (AddRoleToInstanceProfile, IAM API Reference).
    if context.change.action != "update" or context.disappears or not context.touches("Roles"):
        return None
    users = context.owner or ("the masters" if context.change.logical_id.startswith("Master") else "the nodes")
    return Impact(
        f"permissions: the instance profile of {users} holds another role; running instances are not replaced and get "
        "the credentials of the new role only some time later, so keep the old role and its policies for a day"
    )


def _key_pair_impact(context: ChangeContext) -> Impact | None:
    if context.change.action == "remove":
        return Impact("the SSH key pair is removed; running instances keep the key")
    if context.disappears:
        return Impact(f"the SSH key pair {context.verb}; instances get it when they are replaced")
    return None


IMPACT_BY_TYPE: Mapping[str, Callable[[ChangeContext], Impact | None]] = {
    AUTO_SCALING_GROUP: _group_impact,
    "AWS::EC2::KeyPair": _key_pair_impact,
    "AWS::EC2::LaunchTemplate": _launch_template_impact,
    "AWS::EC2::Volume": _volume_impact,
    "AWS::IAM::InstanceProfile": _instance_profile_impact,
    "AWS::IAM::Role": _role_impact,
}
# From this many batches on, a plan says how long a rolling update may take, also if the cluster file says nothing of
# how nodes are replaced.
_MANY_BATCHES = 10


def pace(context: ChangeContext) -> str:
    """Return at what pace the nodes of a group are replaced: `one at a time`, or how many, and in which time."""
    group = _node_group(context)
    if group is None:
        return "one at a time"
    size = context.instance_count or group.initial_size
    update = rolling_update(context.cluster, group, size)
    text = "one at a time" if update.batch_size == 1 else f"{update.batch_size} at a time"
    if update.surge:
        text += f", after {update.surge} more {'has' if update.surge == 1 else 'have'} been launched"
    elif group.update.max_surge:
        text += f", without a surge: it has {pluralize(size, 'node')} already, and its maximum is {group.max_size}"
    is_usual = group.update.batch_size == 1 and not group.update.max_surge and not group.update.pause
    if update.batch_count > 1 and (not is_usual or update.batch_count >= _MANY_BATCHES):
        text += (
            f", in {update.batch_count} batches of at most {batch_timeout(context.cluster, group)} minutes each "
            f"({_hours(update.max_minutes)} in all)"
        )
    return text


def _hours(minutes: int) -> str:
    """Return a number of minutes as text: in minutes up to two hours, else in hours, rounded up."""
    return f"{minutes} minutes" if minutes <= 120 else f"{-(-minutes // 60)} hours"


def _node_group(context: ChangeContext) -> NodeGroup | None:
    """Return the node group of the cluster file to which the Auto Scaling group belongs; None for that of a master."""
    logical_id = NodeGroupId.parse(context.change.logical_id)
    if logical_id is None:
        return None
    return next((group for group in context.cluster.node_groups if pascal(group.name) == logical_id.group), None)
