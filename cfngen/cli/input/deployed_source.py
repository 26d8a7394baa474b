"""What a deployed stack says about its cluster, for a command that is given no cluster file.

Without a file a cluster has kube-up's defaults, which a deployed one need not have: whoever has lost the file still
looks at the cluster by the name of its stack.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from boto3 import Session

# The settings that are read from the stack, by key of the cluster file.
_READ_SETTINGS = ("kubernetesVersion",)


def region_of(session: Session, environ: Mapping[str, str]) -> str:
    """Return the region that environment or profile say, as the AWS CLI reads them; empty if neither does."""
    return environ.get("AWS_REGION") or session.region_name or ""


def read_overrides(session: Session, region: str, stack_name: str) -> tuple[str, ...]:
    """Return what the deployed root template of a stack says about its cluster, as values of --set.

    Nothing if there is no such stack, if it is not a cluster's, or if it cannot be read: then the command says why.
    """
    from botocore.exceptions import BotoCoreError, ClientError

    cloudformation = session.client("cloudformation", region_name=region)
    try:
        body: Any = cloudformation.get_template(StackName=stack_name, TemplateStage="Original").get("TemplateBody")
    except (BotoCoreError, ClientError):
        return ()
    if isinstance(body, str):
        try:
            body = json.loads(body)
        except ValueError:
            return ()
    recorded = body.get("Metadata", {}).get("cfngen", {}) if isinstance(body, dict) else {}
    name, settings = recorded.get("cluster"), recorded.get("immutableSettings", {})
    if not name:
        return ()
    return (f"name={name}", *(f"{key}={settings[key]}" for key in _READ_SETTINGS if key in settings))
