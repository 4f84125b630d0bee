"""The native core: C for the two inner loops (text to columns, columns to rows), and what loads it."""
