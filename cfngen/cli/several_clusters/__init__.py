"""Commands for several cluster files: the command is run for each cluster, and a table says how each ended.

`command` is the class of these commands, `runs` runs one for all clusters, in order or side by side (`processes`), and
`outcomes` has what is said of each at the end.
"""
