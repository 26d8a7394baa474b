"""A boto3 session for a sandbox: all its clients call the sandbox, never AWS."""

from __future__ import annotations

import os

import boto3
from botocore.config import Config
from botocore.session import Session

from cfngen.sandbox.untyped import AwsClient

ACCESS_KEY, SECRET_KEY = "sandbox", "sandbox"  # the sandbox accepts any; it asks for its token


class SandboxSession(boto3.Session):  # type: ignore[misc] # boto3 has no types
    """A session whose clients talk to one endpoint, whatever the caller's environment and configuration say."""

    def __init__(self, endpoint: str, token: str, region: str) -> None:
        botocore_session = Session()
        settings = botocore_session.get_component("config_store")
        # Ignore the user's profiles and credentials, and an AWS_PROFILE that does not exist.
        settings.set_config_variable("profile", None)
        settings.set_config_variable("config_file", os.devnull)
        settings.set_config_variable("credentials_file", os.devnull)
        botocore_session.set_default_client_config(
            # Buckets have no DNS names on this machine, so they are in the path; a proxy could not reach the sandbox.
            Config(s3={"addressing_style": "path"}, proxies={}, use_fips_endpoint=False, use_dualstack_endpoint=False)
        )
        super().__init__(ACCESS_KEY, SECRET_KEY, token, region_name=region, botocore_session=botocore_session)
        self._endpoint = endpoint

    def client(self, service_name: str, *arguments: object, **options: object) -> AwsClient:
        """Return a client of the sandbox's service."""
        return super().client(service_name, *arguments, **{**options, "endpoint_url": self._endpoint})
