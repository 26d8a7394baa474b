"""An AWS account on this machine: a double of CloudFormation over moto's service APIs, with instances that boot.

What it does and what it does not is written down in tests/aws/README.md. The tests use it in memory and on simulated
time; `--sandbox` serves it on loopback. It needs the extra `sandbox` of setup.cfg.
"""
