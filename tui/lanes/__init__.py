"""The timeline's widgets: canvas, ruler, minimap, and the messages they post."""
