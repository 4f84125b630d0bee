"""From columns to an immutable index on disk: matching, rows, flows, strings, blocks, the cache."""
