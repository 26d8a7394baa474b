"""A rehearsal in a real account: small operations, cheapest first, compared with what the emulator does with them.

The emulator's own runs are recorded in `expected.json`. A rehearsal does the same steps where it is sent, through the
same code that deploys clusters, and stops at the first difference.
"""
