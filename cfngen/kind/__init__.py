"""A cluster on the user's own machine, in containers (kind), that is like the cluster of a cluster file."""

from cfngen.kind.folder import folder_files

__all__ = ["folder_files"]
