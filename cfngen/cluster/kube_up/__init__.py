"""The environment variables of `cluster/kube-up.sh` on AWS (Kubernetes 1.0 to 1.5), and what cfngen does with them.

All variables that kube-up read are listed. A variable is either translated into keys of the cluster file, or accepted
if its value describes what cfngen does anyway, or refused with a message that names its replacement. Variables of the
operator's machine, such as KUBECONFIG, are ignored.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase

from cfngen.cluster.file.layers import Assignment
from cfngen.cluster.kube_up import instances, network, passthrough
from cfngen.cluster.kube_up.variable import Handling, Variable
from cfngen.cluster.problems import NO_KEY, Problem, Source

__all__ = ["SECTIONS", "VARIABLES", "Handling", "Variable", "assignments_of_environment"]

SECTIONS: Mapping[str, tuple[Variable, ...]] = {
    "Placement, names and network": network.VARIABLES,
    "Instances, disks and images": instances.VARIABLES,
    "Cluster network, add-ons and control plane": network.CLUSTER_VARIABLES,
    "Handed on to the instances": passthrough.VARIABLES,
}
"""The variables, grouped by the heading under which docs/reference/kube-up.md lists them."""

VARIABLES: Mapping[str, Variable] = {variable.name: variable for section in SECTIONS.values() for variable in section}
"""The variables by name."""


def assignments_of_environment(environ: Mapping[str, str]) -> tuple[list[Assignment], list[Problem]]:
    """Return the assignments to keys of the cluster file that kube-up's variables make, and the variables' problems.

    A variable with an empty value counts as unset, as in kube-up.
    """
    assignments: list[Assignment] = []
    problems: list[Problem] = []
    for variable in VARIABLES.values():
        matching = sorted(name for name in environ if any(fnmatchcase(name, pattern) for pattern in variable.patterns))
        for names in ((variable.name, *variable.old_names), *((name,) for name in matching)):
            values = {name: value for name in names if (value := environ.get(name, "").strip())}
            if values:
                problems += _contradictions(values)
                used_name = next(iter(values))
                source = Source(kind="environment", name=used_name)
                try:
                    settings = variable.settings(values[used_name])
                except ValueError as error:
                    problems.append(Problem(NO_KEY, str(error), source=source))
                else:
                    assignments += [Assignment(path, value, source, default) for path, value, default in settings]
    return assignments, problems


def _contradictions(values: Mapping[str, str]) -> Iterator[Problem]:
    """Yield a problem for each old name of a variable, after its current one, that has another value than that."""
    (name, value), *others = values.items()
    for old_name, old_value in others:
        if old_value != value:
            message = f"it is the old name of {name}, which has a different value ({value!r}); unset one of them"
            yield Problem(NO_KEY, message, source=Source(kind="environment", name=old_name))
