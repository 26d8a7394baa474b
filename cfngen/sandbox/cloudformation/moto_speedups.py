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
    _cache_urls()
    _drop_old_accounts()
    _leave_requests_alone()
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


def _cache_urls() -> None:
    """Make the URLs of a service in a region once.

    moto 5.2.5 makes them again for each request (moto/core/base_backend.py, `urls`).
    """
    from moto.core.base_backend import BaseBackend

    make_urls = getattr(BaseBackend, "urls").fget  # noqa: B009
    urls: dict[tuple[type, str], object] = {}

    def cached_urls(self: MotoModel) -> object:
        key = (type(self), self.region_name)
        if key not in urls:
            urls[key] = make_urls(self)
        return urls[key]

    setattr(BaseBackend, "urls", property(cached_urls))  # noqa: B010


def _drop_old_accounts() -> None:
    """Let what is in an account go when a new one is opened, and make nothing in its place.

    moto 5.2.5 first resets each service in each region, which makes EC2's default network, and then forgets them all
    (moto/core/base_backend.py, `BackendDict.reset`). Services with a `reset` of their own, which close files, keep it.
    """
    from moto.core.base_backend import AccountSpecificBackend, BaseBackend

    def reset(self: MotoModel) -> None:
        for backend in self.values():
            if type(backend).reset is not BaseBackend.reset:
                backend.reset()

    setattr(AccountSpecificBackend, "reset", reset)  # noqa: B010


def _leave_requests_alone() -> None:
    """Register no URLs with `responses`, which answers in place of AWS for users of the library `requests`.

    moto 5.2.5 registers 1,300 whenever an account is opened (moto/core/models.py, `_enable_patching`). Neither cfngen
    nor boto3 uses `requests`.
    """
    from moto.core import models

    setattr(models, "RESPONSES_METHODS", [])  # noqa: B010


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
