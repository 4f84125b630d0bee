"""The terminal itself: its modes, what is sent to it, and what is done where something fails."""
