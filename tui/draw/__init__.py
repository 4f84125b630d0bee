"""Drawing without an App: runs, segments, palette, glyphs, layout, ruler, minimap."""
