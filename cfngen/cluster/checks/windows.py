"""Checks that no image is one of Windows."""

from __future__ import annotations

from collections.abc import Iterator

from cfngen.cluster.checks.sections import all_machines
from cfngen.cluster.model import Cluster
from cfngen.cluster.problems import Problem
from cfngen.cluster.sections.base import NO_WINDOWS


def _check_ssm_parameters(cluster: Cluster) -> Iterator[Problem]:
    for path, machine in all_machines(cluster):
        # "Calling AMI public parameters in Parameter Store", Systems Manager User Guide.
        if (machine.image.ssm_parameter or "").startswith("/aws/service/ami-windows-latest/"):
            yield Problem((*path, "image", "ssmParameter"), f"{machine.image.ssm_parameter} {NO_WINDOWS}")


PROBLEM_CHECKS = (_check_ssm_parameters,)
