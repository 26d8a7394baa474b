"""The environment variables of `cluster/kube-up.sh` on AWS (Kubernetes 1.0 to 1.5), and what cfngen does with them.

All variables that kube-up read are listed. A variable is either translated into keys of the cluster file, or accepted
if its value describes what cfngen does anyway, or refused with a message that names its replacement. Variables of the
operator's machine, such as KUBECONFIG, are ignored.
"""

from __future__ import annotations

from collections.abc import Mapping

from cfngen.cluster.kube_up import instances, network, passthrough, placement
from cfngen.cluster.kube_up.variable import Handling, Variable
from cfngen.cluster.layers import Assignment
from cfngen.cluster.problems import Problem, Source

__all__ = ["SECTIONS", "VARIABLES", "Handling", "Variable", "assignments"]

SECTIONS: Mapping[str, tuple[Variable, ...]] = {
    "Placement, names and network": placement.VARIABLES,
    "Instances, disks and images": instances.VARIABLES,
    "Cluster network, add-ons and control plane": network.VARIABLES,
    "Handed on to the instances": passthrough.VARIABLES,
}
"""The variables by the heading under which the documentation lists them."""

VARIABLES: Mapping[str, Variable] = {variable.name: variable for section in SECTIONS.values() for variable in section}
"""The variables by name."""


def assignments(environ: Mapping[str, str]) -> tuple[list[Assignment], list[Problem]]:
    """Return the settings of the cluster file that kube-up's variables give, and the problems with the variables.

    A variable with an empty value counts as unset, as in kube-up.
    """
    result: list[Assignment] = []
    problems: list[Problem] = []
    for variable in VARIABLES.values():
        set_variables = {
            name: value for name in (variable.name, *variable.old_names) if (value := environ.get(name, "").strip())
        }
        name, value = next(iter(set_variables.items()), ("", ""))
        if not name:
            continue
        for old_name, old_value in set_variables.items():
            if old_value != value:
                message = f"it is the old name of {name}, which has a different value ({value!r}); unset one of them"
                problems.append(Problem((), message, source=Source("environment", old_name)))
        source = Source("environment", name)
        try:
            result += [Assignment(path, setting, source) for path, setting in variable.settings(value)]
        except ValueError as error:
            problems.append(Problem((), str(error), source=source))
    return result, problems
