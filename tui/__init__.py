"""The terminal side of tracelane: it translates what core computed, and never computes on events."""
