"""Recording of processes that run: the protocol between Kineto and its daemon, the daemon's side of it, and
one recording of several processes at one time.
"""
