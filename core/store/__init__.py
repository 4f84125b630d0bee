"""The capture store: summaries of many ranks in a folder or bucket, made anywhere, read anywhere."""
