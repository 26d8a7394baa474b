"""The rules of security groups: who may reach whom on which port, and why."""
