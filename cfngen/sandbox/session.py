"""A boto3 session for a sandbox: every client goes to the sandbox, and none to AWS."""

from __future__ import annotations

import os
from typing import Any

import boto3
from botocore.config import Config
from botocore.session import Session

CREDENTIALS = ("sandbox", "sandbox")  # the sandbox takes any


class SandboxSession(boto3.Session):  # type: ignore[misc] # boto3 has no types
    """A session whose clients talk to one endpoint, whatever the caller's environment and configuration say.

    Args:
        endpoint: where the sandbox answers.
        region: of the clients.
    """

    def __init__(self, endpoint: str, region: str) -> None:
        own = Session()
        settings = own.get_component("config_store")
        # No profile of the caller's is read, and none can be missing.
        for name, value in {"profile": None, "config_file": os.devnull, "credentials_file": os.devnull}.items():
            settings.set_config_variable(name, value)
        own.set_default_client_config(
            # Buckets have no names of their own in the DNS of this machine; and no proxy knows the way to it.
            Config(s3={"addressing_style": "path"}, proxies={}, use_fips_endpoint=False, use_dualstack_endpoint=False)
        )
        super().__init__(*CREDENTIALS, region_name=region, botocore_session=own)
        self._endpoint = endpoint

    def client(self, service_name: str, *arguments: Any, **options: Any) -> Any:
        """Return a client of the sandbox's service."""
        return super().client(service_name, *arguments, **{**options, "endpoint_url": self._endpoint})


def session(endpoint: str, region: str) -> Any:
    """Return a session for the sandbox that answers at an endpoint."""
    return SandboxSession(endpoint, region)
