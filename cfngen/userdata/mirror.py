"""Where an instance fetches a file from: its origin, or the cluster's own mirror."""

from __future__ import annotations

from cfngen.cluster.model import Cluster


def mirrored(cluster: Cluster, url: str) -> str:
    """Return the address to fetch `url` from: itself, or below `assets.mirror` by the origin's host and path."""
    if not cluster.assets.mirror:
        return url
    return f"{cluster.assets.mirror.rstrip('/')}/{url.partition('://')[2]}"
