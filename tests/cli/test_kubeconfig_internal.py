"""`cfngen kubeconfig` for a cluster whose API has a public and an internal endpoint."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from deployed_cluster import Shell, commanding, place

from cfngen.cluster.load import parse

NAME = "api.example.com"


def test_each_endpoint_has_its_own_url(cfngen: Shell, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    dns = {"name": NAME, "publicZone": {"name": NAME}}
    with place(parse({"api": {"internal": True, "dns": dns}})) as where:
        where.create()
        run = commanding(where, cfngen, monkeypatch)

        def server_name(*options: str) -> Any:
            [entry] = yaml.safe_load(run("kubeconfig", "--print", *options).out)["clusters"]
            return entry["cluster"]["tls-server-name"]

        assert server_name() == NAME
        assert server_name("--internal") == "172.20.0.9"
