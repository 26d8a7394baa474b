"""Checks of names, tags and texts: they are unique, no service refuses them, and nothing in them is invisible."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

from cfngen.cluster.checks.roles import policy_statements
from cfngen.cluster.checks.sections import KeyCheck, ingress_rules
from cfngen.cluster.model import Cluster
from cfngen.cluster.naming import names
from cfngen.cluster.naming.id_form import pascal
from cfngen.cluster.naming.tag_keys import why_key_refused
from cfngen.cluster.paths import Path, leaves
from cfngen.cluster.problems import Problem
from cfngen.text_limits import STACK_TAG_VALUE, TAG_VALUE, same_but_for_case

# Tags that the user may choose. A resource has 50 tags at most, and cfngen, CloudFormation and Kubernetes add some of
# them: https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/Using_Tags.html
_MAX_TAGS = 40
# Texts of the cluster file appear in templates, plans and user data. A character that reverses the direction of text,
# has no width or moves the cursor makes a line look different from what machines read (CVE-2021-42574, "Trojan
# Source"). These are Unicode's categories of line and paragraph separators, control and format characters, and
# surrogates. Unassigned and private-use characters are visible, so their categories are not among them.
_INVISIBLE_CATEGORIES = ("Zl", "Zp", "Cc", "Cf", "Cs")
_ALLOWED_CONTROL_CHARACTERS = frozenset("\t\n")


def _check_cluster_name_length(cluster: Cluster) -> Iterator[Problem]:
    too_long = names.cluster_name_too_long(cluster.name)
    if too_long:
        derived_name, name_text = too_long
        excess_length = len(name_text) - derived_name.max_length
        message = (
            f"has {len(cluster.name)} characters; the {derived_name.subject} is named after it and may have "
            f"{derived_name.max_length}, so use at most {len(cluster.name) - excess_length}"
        )
        yield Problem(("name",), message)


def _check_group_name_lengths(cluster: Cluster) -> Iterator[Problem]:
    for index, group in enumerate(cluster.node_groups):
        too_long = names.group_name_too_long(cluster, group.name)
        if too_long:
            derived_name, name_text = too_long
            excess_length = len(name_text) - derived_name.max_length
            message = (
                f"has {len(group.name)} characters; the {derived_name.subject} is named after it and may have "
                f"{derived_name.max_length}, so use at most {len(group.name) - excess_length}"
            )
            yield Problem(("nodeGroups", index, "name"), message, related_paths=(("name",),))


def _check_group_names_distinct(cluster: Cluster) -> Iterator[Problem]:
    """Check that no two node groups would have the same logical ids: in these, a group's name has no hyphens."""
    first_index_by_id: dict[str, int] = {}
    for index, group in enumerate(cluster.node_groups):
        logical_id = pascal(group.name)
        earlier_index = first_index_by_id.setdefault(logical_id, index)
        if earlier_index == index:
            continue
        other = cluster.node_groups[earlier_index].name
        if other == group.name:
            message = f"{group.name} is also the name of nodeGroups[{earlier_index}]; give each group a different name"
        else:
            message = (
                f"{group.name} and {other} (nodeGroups[{earlier_index}]) differ by hyphens only and would share the "
                f"logical id {logical_id}; rename one"
            )
        yield Problem(("nodeGroups", index, "name"), message, related_paths=(("nodeGroups", earlier_index, "name"),))


def _check_no_dynamic_references(cluster: Cluster) -> Iterator[Problem]:
    """Check that no text of the cluster file is a dynamic reference where it is text in the template, too.

    CloudFormation resolves `{{resolve:…}}` everywhere in a template, and there is no way to escape one ("Dynamic
    references", AWS CloudFormation User Guide). Other free texts are packed in user data, and stay what they are.
    """
    texts: list[tuple[Path, object]] = [
        (("ssh", "keyName"), cluster.ssh.key_name),
        (("ssh", "publicKey"), cluster.ssh.public_key),
    ]
    texts += [((*path, "description"), rule.description) for path, rule in ingress_rules(cluster)]
    for path, statement in policy_statements(cluster):
        texts += leaves(statement.model_dump(mode="json", by_alias=True), path)
    for path, text in texts:
        if any("{{resolve:" in str(part) for part in (*path, text)):
            yield Problem(path, "CloudFormation replaces {{resolve:…}} in every text; remove it")


def _check_tag_count(cluster: Cluster) -> Iterator[Problem]:
    if len(cluster.tags) > _MAX_TAGS:
        message = (
            f"{len(cluster.tags)} tags are too many; a resource has 50, and cfngen leaves {_MAX_TAGS} of them to you"
        )
        yield Problem(("tags",), message)


def _check_keys_and_values(cluster: Cluster) -> Iterator[Problem]:
    """Check keys and values. Stacks get the cluster's tags too, so a value must be valid for a stack."""
    for key, value in cluster.tags.items():
        key_problem = why_key_refused(key)
        value_problem = STACK_TAG_VALUE.fault(value)
        if key_problem:
            yield Problem(("tags", key), key_problem)
        elif value_problem:
            yield Problem(("tags", key), f"the value {value_problem}")


def _check_keys_differ_in_more_than_case(cluster: Cluster) -> Iterator[Problem]:
    """Check that no two keys differ in upper and lower case only: IAM ignores the case in tags of roles."""
    for earlier, key in same_but_for_case(list(cluster.tags)):
        message = f"differs from {earlier} in upper and lower case only, and IAM takes both for one; remove one of them"
        yield Problem(("tags", key), message, related_paths=(("tags", earlier),))


def _check_vpc_name_tag(cluster: Cluster) -> Iterator[Problem]:
    reason = TAG_VALUE.fault(cluster.network.vpc.name)
    if reason and not cluster.network.vpc.id:
        yield Problem(("network", "vpc", "name"), f"the name becomes a tag: its value {reason}")


def _check_no_invisible_characters(cluster: Cluster) -> Iterator[Problem]:
    """Check that no key and no text of the cluster file has an invisible character.

    A key is reported once, not for each value below it.
    """
    # As JSON, most clusters are one text without such a character: there, line ends and control characters are escaped.
    text = cluster.model_dump_json(by_alias=True)
    if text.isprintable() and not re.search(r"\\[bfru]", text):
        return
    reported_keys: set[Path] = set()
    for path, value in leaves(cluster.model_dump(mode="json", by_alias=True)):
        for length, key in enumerate(path, start=1):
            key_path = path[:length]
            invisible_character = first_invisible(key) if isinstance(key, str) else ""
            if invisible_character and key_path not in reported_keys:
                reported_keys.add(key_path)
                yield Problem(key_path, f"the key {_describe_invisible(invisible_character)}")
        invisible_character = first_invisible(value) if isinstance(value, str) else ""
        if invisible_character:
            yield Problem(path, f"the text {_describe_invisible(invisible_character)}")


def first_invisible(text: str) -> str:
    """Return the first invisible character of a text, or an empty string; spaces, tabs and line ends are allowed."""
    text = text.replace("\r\n", "\n")
    if text.isprintable():
        return ""
    for character in text:
        is_invisible = unicodedata.category(character) in _INVISIBLE_CATEGORIES
        if is_invisible and character not in _ALLOWED_CONTROL_CHARACTERS:
            return character
    return ""


def _describe_invisible(character: str) -> str:
    """Return what is wrong with a text that contains an invisible character; completes a message."""
    name = unicodedata.name(character, "control character").lower()
    return f"contains U+{ord(character):04X} ({name}), which is invisible in a review; remove it"


PROBLEM_CHECKS = (
    _check_cluster_name_length,
    KeyCheck(
        "name",
        # "Name", CreateLoadBalancer, ELB API Reference.
        when=lambda cluster: cluster.control_plane.count > 1 and cluster.name.startswith("internal-"),
        message="the load balancer of several masters is named after the cluster, and such a name cannot start with "
        "internal-; use another name",
        related=("controlPlane.count",),
    ),
    _check_group_name_lengths,
    _check_group_names_distinct,
    _check_no_dynamic_references,
    _check_tag_count,
    _check_keys_and_values,
    _check_keys_differ_in_more_than_case,
    _check_vpc_name_tag,
)
CHARACTER_CHECKS = (_check_no_invisible_characters,)
