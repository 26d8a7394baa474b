"""The sections of a cluster file; `cfngen.cluster.model` puts them together."""
