"""What cluster-autoscaler makes of an Auto Scaling group's tags and types while the group has no node.

Its rules, from cluster-autoscaler/cloudprovider/aws of kubernetes/autoscaler (`aws_manager.go`,
`auto_scaling_groups.go` and `aws_wrapper.go`; the same in 1.34.5, 1.35.2 and 1.36.1):

- A node has what EC2 says about one type: the launch template's, or the first of a mixed policy, or the first that
  meets its requirements. It has 110 pods, and every GPU is one of NVIDIA. All that it has, pods can have.
- A tag is a label if its key contains `…/node-template/label/`, else if it contains `eks:`; the label's key is what
  follows, up to the next such text.
- A tag is a taint if its key contains `…/node-template/taint/` and its value contains a colon with an effect after it;
  the first colon separates value and effect.
- A tag is a resource, of any name, if its key contains `…/node-template/resources/` and its value is a quantity; what
  is no quantity is ignored. It replaces what the type says.
- A tag is an option if its key begins with `…/node-template/autoscaling-options/`. Of all names only five are read,
  and a value that is no number, duration or truth value is ignored.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

PREFIX = "k8s.io/cluster-autoscaler/node-template/"
EFFECT = re.compile(r".*:(?:NoSchedule|NoExecute|PreferNoSchedule)", re.DOTALL)
QUANTITY = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)(Ki|Mi|Gi|Ti|Pi|Ei|n|u|m|k|M|G|T|P|E|[eE][+-]?[0-9]+)?")
DURATION = re.compile(r"[+-]?((([0-9]+\.?[0-9]*|\.[0-9]+)(ns|us|µs|ms|s|m|h))+|0)")
TRUTH = frozenset({"1", "t", "T", "TRUE", "true", "True", "0", "f", "F", "FALSE", "false", "False"})


def is_float(text: str) -> bool:
    """Whether Go takes a text for a number; of those that it takes beside Python's, none is written here."""
    try:
        float(text)
    except ValueError:
        return False
    return True


OPTIONS: Mapping[str, Callable[[str], bool]] = {
    "scaledownutilizationthreshold": is_float,
    "scaledowngpuutilizationthreshold": is_float,
    "scaledownunneededtime": lambda text: bool(DURATION.fullmatch(text)),
    "scaledownunreadytime": lambda text: bool(DURATION.fullmatch(text)),
    "ignoredaemonsetsutilization": TRUTH.__contains__,
}


@dataclass(frozen=True)
class Reading:
    """What tags say of nodes: labels, taints (key, value, effect), resources, options; and what is left."""

    labels: dict[str, str]
    taints: list[tuple[str, str, str]]
    resources: dict[str, str]
    options: dict[str, str]
    ignored: list[str]


def read(tags: Mapping[str, str]) -> Reading:
    """What cluster-autoscaler reads of a group's tags, given as values by key."""
    reading = Reading({}, [], {}, {}, [])
    for key, value in tags.items():
        after = {kind: key.split(f"{PREFIX}{kind}/")[1:] for kind in ("label", "taint", "resources")}
        if label := (after["label"] or key.split("eks:")[1:]):
            reading.labels.update({label[0]: value} if label[0] else {})
        if after["taint"] and EFFECT.match(value):
            text, effect = value.split(":", 1)
            reading.taints.append((after["taint"][0], text, effect))
        elif after["taint"]:
            reading.ignored.append(key)
        if after["resources"] and after["resources"][0] and QUANTITY.fullmatch(value):
            reading.resources[after["resources"][0]] = value
        elif after["resources"]:
            reading.ignored.append(key)
        if key.startswith(f"{PREFIX}autoscaling-options/"):
            name = key.removeprefix(f"{PREFIX}autoscaling-options/")
            if name in OPTIONS and OPTIONS[name](value):
                reading.options[name] = value
            else:
                reading.ignored.append(key)
    return reading
