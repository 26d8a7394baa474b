"""Deploying templates with CloudFormation, and operating the cluster afterwards.

Everything here runs on the operator's machine and calls AWS or the Kubernetes API. Clients and the clock are passed in,
progress is reported through callables, and nothing is printed.
"""
