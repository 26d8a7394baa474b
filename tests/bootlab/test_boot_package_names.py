"""Packages that the boot program may install: this Debian has each under the name that it is asked for.

What Amazon Linux calls them could not be looked up here.
"""

from __future__ import annotations

import json
import re
import subprocess

import pytest

from cfngen.boot.host import disks
from cfngen.cluster.model import Cluster
from cfngen.userdata import roles


def asked_for() -> dict[str, str]:
    """Return apt's package of each program that masters and nodes may lack."""
    found = {name: apt for name, (apt, _) in {**disks.FORMAT_PACKAGES, **disks.RAID_PACKAGES}.items()}
    for each in roles(Cluster()):
        found.update({name: apt for name, (apt, _) in json.loads(each.files["config.json"])["packages"].items()})
    return {**found, "boto3": "python3-boto3"}


@pytest.mark.parametrize(("program", "package"), sorted(asked_for().items()))
def test_package_is_known_to_the_distribution(program: str, package: str) -> None:
    done = subprocess.run(["apt-cache", "show", package], capture_output=True, text=True, check=False)
    assert re.search(rf"(?m)^Package: {re.escape(package)}$", done.stdout), f"{program}: {done.stderr}"
