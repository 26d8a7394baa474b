"""From finished templates to a cluster that runs, and what a person does with it later.

Everything here talks to AWS (or to the cluster) from the operator's machine. It takes clients and the clock from
outside, reports through the callables it is given, and prints nothing.
"""
