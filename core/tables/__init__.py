"""What a trace says when counted: a table per file, over the whole trace, a range or a step."""
