"""What an expert sees in a trace: rules with thresholds, evidence to jump to, and the time they claim."""
