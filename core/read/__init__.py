"""Reading: from the bytes of a source to batches of columns, and the report of what was read."""
