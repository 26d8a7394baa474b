"""Replaces a download's URL by its URL at the cluster's mirror, if the cluster file has one."""

from __future__ import annotations

from cfngen.cluster.model import Cluster


def mirrored(cluster: Cluster, url: str) -> str:
    """Return the URL to download `url` from: `<assets.mirror>/<host>/<path>` if there is a mirror, otherwise `url`."""
    if not cluster.assets.mirror:
        return url
    return f"{cluster.assets.mirror.rstrip('/')}/{url.partition('://')[2]}"
