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
from cfngen.cluster.problems import NO_KEY, Problem, Source

__all__ = ["SECTIONS", "VARIABLES", "Handling", "Variable", "assignments_of_environment"]

SECTIONS: Mapping[str, tuple[Variable, ...]] = {
    "Placement, names and network": placement.VARIABLES,
    "Instances, disks and images": instances.VARIABLES,
    "Cluster network, add-ons and control plane": network.VARIABLES,
    "Handed on to the instances": passthrough.VARIABLES,
}
"""The variables, grouped by the heading under which docs/reference/kube-up.md lists them."""

VARIABLES: Mapping[str, Variable] = {variable.name: variable for section in SECTIONS.values() for variable in section}
"""The variables by name."""


def assignments_of_environment(environ: Mapping[str, str]) -> tuple[list[Assignment], list[Problem]]:
    """Return the assignments to keys of the cluster file that kube-up's variables make, and the variables' problems.

    A variable with an empty value counts as unset, as in kube-up.

    Args:
        environ: environment variables by name, also those that are not kube-up's.
    """
    result: list[Assignment] = []
    problems: list[Problem] = []
    for variable in VARIABLES.values():
        # The current name first, so that its value is used if an old name of the variable is set, too.
        values_by_name = {name: environ.get(name, "").strip() for name in (variable.name, *variable.old_names)}
        names_in_use = [name for name, value in values_by_name.items() if value]
        if not names_in_use:
            continue
        used_name = names_in_use[0]
        used_value = values_by_name[used_name]
        for old_name in names_in_use[1:]:
            if values_by_name[old_name] != used_value:
                message = (
                    f"it is the old name of {used_name}, which has a different value ({used_value!r}); "
                    "unset one of them"
                )
                problems.append(Problem(NO_KEY, message, source=Source(kind="environment", name=old_name)))
        source = Source(kind="environment", name=used_name)
        try:
            settings = variable.settings(used_value)
        except ValueError as error:
            problems.append(Problem(NO_KEY, str(error), source=source))
        else:
            result += [Assignment(path=setting.path, value=setting.value, source=source) for setting in settings]
    return result, problems
