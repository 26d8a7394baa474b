"""Serves CloudFormation's API from the emulator to ordinary boto3 clients; see `serving`."""

from __future__ import annotations

from cfngen.sandbox.api.moto_extensions import MotoExtensions
from cfngen.sandbox.api.requests import Call, Refusal
from cfngen.sandbox.api.serving import Served, serving

__all__ = ["Call", "MotoExtensions", "Refusal", "Served", "serving"]
