"""Rehearse in a real AWS account: run small operations, cheapest first, and compare them with the emulator.

What the emulator does in each step is recorded in `expected.json`. A rehearsal runs the same steps in AWS, with the
code that also deploys clusters, and stops at the first difference.
"""
