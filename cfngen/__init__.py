"""Kubernetes on EC2 as CloudFormation templates."""

__version__ = "0.1.0"
