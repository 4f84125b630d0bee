"""From a path to columns: sources, cutting, decoding, repair, and the ledger of what was read."""
