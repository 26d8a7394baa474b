"""What moto does anew for each request or resource, and need do once, or not at all."""

from __future__ import annotations

import functools
from typing import Any


@functools.cache
def apply() -> None:
    """Apply them, for as long as the process lasts."""
    _keys()
    _actions()
    _models()
    _images()
    _tags()


def _keys() -> None:
    """Let a symmetric key come into being at once.

    moto 5.2.5 gives it an RSA key that nothing ever uses (moto/kms/models.py, `Key`), a twentieth of a second each.
    """
    from moto.kms import models, utils

    setattr(models, "generate_private_key", functools.cache(utils.generate_private_key))  # noqa: B010


def _actions() -> None:
    """Let a service look up its actions once.

    moto 5.2.5 lists all methods of a service's class anew for each request (moto/core/responses.py, `call_action`); of
    EC2 there are a thousand.
    """
    from moto.core import responses, utils

    setattr(responses, "method_names_from_class", functools.cache(utils.method_names_from_class))  # noqa: B010


def _models() -> None:
    """Let the directories of all services be looked through once.

    moto 5.2.5 takes a new loader for the model of each service (moto/core/utils.py, `_load_service_model`), and each
    looks for the four hundred services of botocore anew.
    """
    from moto.core import loaders, utils

    setattr(utils, "create_loader", functools.cache(loaders.create_loader))  # noqa: B010


def _images() -> None:
    """Let an account have the images that somebody has registered in it.

    moto 5.2.5 brings a thousand, each with a snapshot (moto/ec2/models/amis.py, `_load_amis`), and looks through them
    again and again. Its variable `MOTO_EC2_LOAD_DEFAULT_AMIS` is read when a region is first used, and by then whoever
    empties the environment, as tests of commands do, has removed it.
    """
    from moto.ec2.models.amis import AmiBackend

    setattr(AmiBackend, "_load_amis", lambda backend: None)  # noqa: B010


def _tags() -> None:
    """Let a resource of EC2 find its tags by its id.

    moto 5.2.5 looks for it among all resources, by a regular expression that it compiles for that, and does so for each
    filter of each resource (moto/ec2/models/core.py, `get_tags`).
    """
    from moto.ec2.models.core import TaggedEC2Resource
    from moto.ec2.utils import EC2_PREFIX_TO_RESOURCE, get_prefix

    def get_tags(self: Any) -> list[dict[str, str]]:
        tags = self.ec2_backend.tags.get(self.id) if self.id else None
        if not tags:
            return []
        kind = EC2_PREFIX_TO_RESOURCE.get(get_prefix(self.id), "")
        return [
            {"resource_id": self.id, "key": key, "value": value, "resource_type": kind} for key, value in tags.items()
        ]

    setattr(TaggedEC2Resource, "get_tags", get_tags)  # noqa: B010
