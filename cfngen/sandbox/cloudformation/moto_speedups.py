"""Speeds up moto: patches it, for the rest of the process, to cache or skip work that it does for every request."""

from __future__ import annotations

import functools

from cfngen.sandbox.moto_types import MotoModel


@functools.cache
def apply() -> None:
    """Apply all speedups, once per process."""
    _reuse_rsa_keys()
    _cache_actions()
    _cache_service_models()
    _skip_default_images()
    _find_tags_by_id()


def _reuse_rsa_keys() -> None:
    """Generate the RSA key for KMS keys only once.

    moto 5.2.5 generates one for each KMS key, even a symmetric one, which takes 0.05 seconds
    (moto/kms/models.py, `Key`).
    """
    from moto.kms import models, utils

    setattr(models, "generate_private_key", functools.cache(utils.generate_private_key))  # noqa: B010


def _cache_actions() -> None:
    """Cache the list of a service's actions.

    moto 5.2.5 lists all methods of a service's class for each request (moto/core/responses.py, `call_action`); EC2
    has a thousand.
    """
    from moto.core import responses, utils

    setattr(responses, "method_names_from_class", functools.cache(utils.method_names_from_class))  # noqa: B010


def _cache_service_models() -> None:
    """Reuse one loader of botocore's service models.

    moto 5.2.5 creates a new loader for each service (moto/core/utils.py, `_load_service_model`), and each loader
    searches the directories of botocore's four hundred services again.
    """
    from moto.core import loaders, utils

    setattr(utils, "create_loader", functools.cache(loaders.create_loader))  # noqa: B010


def _skip_default_images() -> None:
    """Start without moto's default images, so that an account has only registered ones.

    moto 5.2.5 loads a thousand, each with a snapshot (moto/ec2/models/amis.py, `_load_amis`), and searches them often.
    Setting `MOTO_EC2_LOAD_DEFAULT_AMIS` does not help: moto reads it when a region is first used, and tests of commands
    have cleared the environment by then.
    """
    from moto.ec2.models.amis import AmiBackend

    setattr(AmiBackend, "_load_amis", lambda backend: None)  # noqa: B010


def _find_tags_by_id() -> None:
    """Look up the tags of an EC2 resource by its id.

    moto 5.2.5 searches the tags of all resources with a regular expression, for each filter of each resource
    (moto/ec2/models/core.py, `get_tags`).
    """
    from moto.ec2.models.core import TaggedEC2Resource
    from moto.ec2.utils import EC2_PREFIX_TO_RESOURCE, get_prefix

    def get_tags(self: MotoModel) -> list[dict[str, str]]:
        tags = self.ec2_backend.tags.get(self.id) if self.id else None
        if not tags:
            return []
        resource_type = EC2_PREFIX_TO_RESOURCE.get(get_prefix(self.id), "")
        return [
            {"resource_id": self.id, "key": key, "value": value, "resource_type": resource_type}
            for key, value in tags.items()
        ]

    setattr(TaggedEC2Resource, "get_tags", get_tags)  # noqa: B010
