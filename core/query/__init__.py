"""Questions to an open index: what a screen cell shows, what a slice is, what belongs to it."""
