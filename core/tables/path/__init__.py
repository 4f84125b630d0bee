"""The critical path: what released each point of a trace, back from its end, and its length with other times.

`path_graph` says what can release what, `path_walk` walks back along it, `path_points` are the points that it
touches, `path_change` how long it would be if slices took another time, `critical_path` the tables.

Below stand the rooms device, host and frame.
"""
