"""Looks at an existing VPC and what the cluster file names in it, before anything is created: reads, changes nothing.

`reading` describes the network by AWS's API, the other modules judge the description, and `checks` lists them.
"""
