"""An AWS account on this machine: an emulator of CloudFormation on top of moto, with instances that boot.

tests/aws/README.md lists what it emulates and what it leaves out. The tests use it in memory and on simulated time;
`--sandbox` serves it on the loopback interface. It needs the extra `sandbox` of setup.cfg.
"""
