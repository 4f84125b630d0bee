"""Is a trace to be trusted: what was read and what was not, clocks, overlaps, what is lost or lacking."""
