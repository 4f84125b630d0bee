"""What is shown beside the lanes: a panel or a screen per file."""
