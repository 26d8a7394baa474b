"""Stand-ins for the programs of Kubernetes that cannot be had from package registries.

On an instance they lie in /usr/lib/bootlab. Each notes how it was called; see `calls`. What one of them does not know,
it refuses: a call that the real program would take and a stand-in does not is a failed boot, not a silent success.
"""
