"""The commands of the viewer: what each is called, its keys and its help, by task."""
