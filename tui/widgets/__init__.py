"""Small widgets that know nothing of traces."""
