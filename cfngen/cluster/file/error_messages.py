"""Messages for pydantic's validation errors, in terms of the cluster file."""

from __future__ import annotations

import difflib
import json
from collections.abc import Callable, Mapping

from pydantic_core import ErrorDetails

from cfngen.cluster.file.keys import fields, section_at, sections_with
from cfngen.cluster.paths import Path, dotted

_DASHBOARD_PATH: Path = ("addons", "kubernetesDashboard")
# The message for each key that earlier versions had, or that users of other tools expect, by path.
_EXPLAINED_KEYS: Mapping[Path, str] = {
    # "Access logs for your Network Load Balancer", Elastic Load Balancing User Guide, November 2026.
    ("api", "accessLogs"): "the API's load balancers pass TLS through (TCP listeners), and network load balancers log "
    "TLS listeners only; remove the key, and use VPC flow logs, or Kubernetes' audit log (controlPlane.auditLog)",
    (
        "etcd",
        "external",
    ): "etcd runs on the masters, on volumes that outlive them, and cfngen makes its certificates "
    "and snapshots; an etcd of your own cannot be used: remove the key, and size controlPlane.volume for it",
    _DASHBOARD_PATH: "Kubernetes Dashboard has ended (its repository is archived since January 2026); "
    "use addons.headlamp, its successor, and remove this key",
}
# Of a section with at most as many keys, they are listed where it has another form.
_MAX_KEYS_LISTED = 4
_SPOT = "for Spot Instances write `instancesDistribution: {onDemandPercentage: 0}` in the node group"
_PORTS = "write `ingress: [{ports: 30080, cidrs: [203.0.113.0/24]}]`"
_FIXED_NUMBER = "write minSize and maxSize; both are the same for a fixed number"
_ZONES = "write a subnet for each zone: `network: {subnets: [{zone: us-west-2a}]}`"
_COUNT = "write count: 1, 3 or 5 masters"
# What to write in place of keys of kops, eksctl and others, by section without list positions, and by key.
_ADVICE_ON_KEYS: Mapping[Path, Mapping[str, str]] = {
    (): {
        **dict.fromkeys(("allowedCidrs", "access"), "write api.allowedCidrs, or ssh.allowedCidrs"),
        **dict.fromkeys(("availabilityZones", "zones"), _ZONES),
        **dict.fromkeys(("cidr", "networkCIDR", "vpcCidr"), "write network.vpc.cidr"),
        **dict.fromkeys(("cni", "networking"), "write network.plugin"),
        **dict.fromkeys(
            ("count", "desiredCapacity", "max", "min", "replicas", "size"),
            "write nodeGroups[].minSize and maxSize, or controlPlane.count",
        ),
        **dict.fromkeys(("instanceGroups", "managedNodeGroups", "nodePools", "nodes", "workers"), "write nodeGroups"),
        "instanceType": "write nodeGroups[].instanceType, or controlPlane.instanceType",
        "kubernetesApiAccess": "write api.allowedCidrs",
        **dict.fromkeys(("master", "masters"), "write controlPlane"),
        "ports": f"{_PORTS} in controlPlane or in a node group",
        "spot": _SPOT,
        "sshAccess": "write ssh.allowedCidrs",
        "sshKeyName": "write ssh.keyName",
        "version": "write kubernetesVersion",
    },
    ("api",): dict.fromkeys(("access", "cidr", "cidrs", "sourceRanges"), "write allowedCidrs"),
    ("controlPlane",): {
        **dict.fromkeys(("max", "maxSize", "min", "minSize", "nodes", "replicas", "size"), _COUNT),
        **dict.fromkeys(("machineType", "type"), "write instanceType"),
        "ports": _PORTS,
        "spot": "masters are On-Demand Instances; remove the key",
        **dict.fromkeys(("availabilityZones", "subnets", "zones"), f"masters are in the first subnets; {_ZONES}"),
    },
    ("network",): {
        **dict.fromkeys(("availabilityZones", "zones"), _ZONES),
        **dict.fromkeys(("cidr", "networkCIDR"), "write vpc.cidr"),
        **dict.fromkeys(("cni", "networking"), "write plugin"),
        **dict.fromkeys(("natGateway", "natGateways"), "write nat, with topology: private"),
        **dict.fromkeys(("private", "privateSubnets"), "write topology: private"),
    },
    ("nodeGroups",): {
        "ami": "write `image: {id: …}`",
        "amiFamily": "write `image: {distribution: …}`",
        **dict.fromkeys(("availabilityZones", "subnets"), "write zones"),
        **dict.fromkeys(("count", "replicas", "size"), _FIXED_NUMBER),
        **dict.fromkeys(("desired", "desiredCapacity"), "write desiredSize"),
        **dict.fromkeys(("diskSize", "rootVolumeSize", "volumeSize"), "write `rootVolume: {size: …}`"),
        **dict.fromkeys(("machineType", "type"), "write instanceType"),
        **dict.fromkeys(("max", "maxCount"), "write maxSize"),
        "maxPrice": "write spotPrice",
        **dict.fromkeys(("min", "minCount"), "write minSize"),
        "nodeLabels": "write labels",
        "ports": _PORTS,
        "privateNetworking": "write network.topology: private, which is for all instances",
        "spot": _SPOT,
        **dict.fromkeys(("rootVolumeType", "volumeType"), "write `rootVolume: {type: …}`"),
        "userData": "write cloudConfig, files, units or preBootCommands",
    },
}
_MISSING_ROLE = (
    "is missing; enter the ARN of the role, also if there is an instance profile that holds it: whoever launches "
    "instances must be allowed to pass this role"
)

MessageWriter = Callable[[object, Mapping[str, object]], str]
"""Returns the message for one type of error, given the invalid value and the context (`ctx`) of pydantic's error."""


def describe_error(error: ErrorDetails) -> str:
    """Return the message for one of pydantic's errors: what is wrong with the value, and what to do.

    Args:
        error: an item of `ValidationError.errors()`.
    """
    kind = error["type"]
    if kind == "cfngen":
        return str(error["msg"])
    if kind == "extra_forbidden":
        return unknown_key(error["loc"])
    if kind == "missing" and error["loc"][-1:] == ("role",):
        return _MISSING_ROLE
    if kind.startswith("model_") and isinstance(error["input"], bool):
        section = section_at(error["loc"])
        if section and "enabled" in fields(section):
            value = describe_value(error["input"])
            return f"must be keys with values, not {value}; write {{enabled: {value}}}"
    if kind.startswith("model_") and (section := section_at(error["loc"])):
        advice = f"; the keys are {', '.join(fields(section))}" if len(fields(section)) <= _MAX_KEYS_LISTED else ""
        return _write_mapping_message(error["input"], {}) + advice
    write_message = _MESSAGE_WRITERS.get(kind)
    if write_message is None:
        return str(error["msg"])
    return write_message(error["input"], error.get("ctx", {}))


def describe_value(value: object) -> str:
    """Return how a message names an invalid value, e.g. `the text "20"` or `a list`."""
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (int, float)):
        return f"the number {value}"
    if isinstance(value, str):
        return f"the text {json.dumps(value, ensure_ascii=False)}"
    return "a list" if isinstance(value, (list, tuple)) else "a mapping of keys"


def unknown_key(path: Path) -> str:
    """Return the message for an unknown key: the key that was probably meant, where it belongs, or all keys here."""
    if path in _EXPLAINED_KEYS:
        return _EXPLAINED_KEYS[path]
    key = str(path[-1])
    section_path = tuple(part for part in path[:-1] if isinstance(part, str))
    if advice := _ADVICE_ON_KEYS.get(section_path, {}).get(key):
        return f"there is no such key; {advice}"
    section = section_at(section_path)
    known_keys = list(fields(section)) if section else []
    # Compared without case and word separators, so that `pod_cidr` is close to `podCidr`.
    known_key_by_lower_case = {known_key.lower(): known_key for known_key in known_keys}
    simplified_key = key.replace("_", "").replace("-", "").lower()
    close_matches = difflib.get_close_matches(simplified_key, known_key_by_lower_case, n=1, cutoff=0.65)
    if close_matches:
        return f"there is no such key; did you mean {known_key_by_lower_case[close_matches[0]]}?"
    if section_path == ("addons",):
        return "there is no such add-on; any Helm chart goes into addons.charts (docs/build/addons.md)"
    paths_elsewhere = [dotted(path_elsewhere) for path_elsewhere in sections_with(key)]
    if len(paths_elsewhere) == 1:
        section_name = paths_elsewhere[0].rpartition(".")[0] or "the top level"
        return f"there is no such key here; it belongs under {section_name}"
    return f"there is no such key; the keys here are {', '.join(known_keys)}"


def _write_whole_number_message(value: object, context: Mapping[str, object]) -> str:
    advice = "remove the quotes" if isinstance(value, str) and value.strip().isdigit() else "write digits only"
    return f"must be a whole number, not {describe_value(value)}; {advice}"


def _write_boolean_message(value: object, context: Mapping[str, object]) -> str:
    # Truth values of YAML 1.1, which are text in YAML 1.2.
    intended = {"yes": "true", "on": "true", "no": "false", "off": "false"}.get(str(value).lower())
    return f"must be true or false, not {describe_value(value)}" + (f"; write {intended}" if intended else "")


def _write_text_message(value: object, context: Mapping[str, object]) -> str:
    advice = "; put it in quotes" if isinstance(value, (int, float, bool)) else ""
    return f"must be text, not {describe_value(value)}{advice}"


def _write_list_message(value: object, context: Mapping[str, object]) -> str:
    return f"must be a list, not {describe_value(value)}; write each item on a line of its own that begins with -"


def _write_mapping_message(value: object, context: Mapping[str, object]) -> str:
    return f"must be keys with values, not {describe_value(value)}"


def _write_choice_message(value: object, context: Mapping[str, object]) -> str:
    # Pydantic lists the choices as `'a', 'b' or 'c'`.
    choices = str(context["expected"]).replace("'", "").replace(" or ", ", ").split(", ")
    close_matches = difflib.get_close_matches(str(value).lower(), choices, n=1, cutoff=0.7)
    requirement = f"must be {choices[0]}" if len(choices) == 1 else f"must be one of {', '.join(choices)}"
    advice = f"; did you mean {close_matches[0]}?" if close_matches else ""
    return f"{requirement}, not {describe_value(value)}{advice}"


def _size_message(words: str, limit: object, noun: str, size: object) -> str:
    return f"must {words} {limit} {noun}{'s' if limit != 1 else ''}, not {size}"


# By type of pydantic's error.
_MESSAGE_WRITERS: Mapping[str, MessageWriter] = {
    "missing": lambda value, context: "is missing; give it a value",
    "int_type": _write_whole_number_message,
    "bool_type": _write_boolean_message,
    "string_type": _write_text_message,
    "tuple_type": _write_list_message,
    "list_type": _write_list_message,
    "model_type": _write_mapping_message,
    "model_attributes_type": _write_mapping_message,
    "dict_type": _write_mapping_message,
    "literal_error": _write_choice_message,
    "greater_than_equal": lambda value, context: f"must be at least {context['ge']}, not {value}",
    "less_than_equal": lambda value, context: f"must be at most {context['le']}, not {value}",
    "too_short": lambda value, context: _size_message(
        "hold at least", context["min_length"], "item", context["actual_length"]
    ),
    "too_long": lambda value, context: _size_message(
        "hold at most", context["max_length"], "item", context["actual_length"]
    ),
    "string_too_short": lambda value, context: _size_message(
        "have at least", context["min_length"], "character", len(str(value))
    ),
    "string_too_long": lambda value, context: _size_message(
        "have at most", context["max_length"], "character", len(str(value))
    ),
}
