"""Output for no terminal: the static picture and headless tables (rich allowed, textual not)."""
