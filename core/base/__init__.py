"""What every room of core may use: exact time, identities, clocks, errors, safe text."""
