"""What is shown without an App: static picture, summaries, the progress bar. rich is allowed, textual is not."""
