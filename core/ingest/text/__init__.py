"""Events read from their text as whole columns: those that are written alike differ in a few places only."""
