"""tracelane without a terminal: read, index and query profiler traces."""
