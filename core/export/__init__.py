"""What leaves tracelane: tables as text, cuts of a trace, marks, reports."""
