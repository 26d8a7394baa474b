"""The first account of a process is as every later one: moto is put right before anything is made."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

FIRST = """
from clusters import in_memory
from cfngen.sandbox.cloudformation import client

with in_memory():
    ec2 = client("ec2", "us-west-2")
    ec2.register_image(Name="image", Architecture="arm64")
    [image] = ec2.describe_images()["Images"]
    print(image["Architecture"], image["BlockDeviceMappings"][0]["Ebs"]["VolumeSize"])
"""


@pytest.mark.drill
def test_an_image_is_registered_before_the_engine_is_there() -> None:
    here = Path(__file__)
    ran = subprocess.run(
        [sys.executable, "-c", FIRST],
        env={"PYTHONPATH": f"{here.parent}:{here.parents[2]}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ran.stdout, ran.stderr) == ("arm64 8\n", "")
