"""What `import tracelane` offers: a trace whose analyses are methods that return tables."""
