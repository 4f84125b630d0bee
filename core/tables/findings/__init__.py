"""Findings about performance: rules with thresholds, evidence to jump to, and the time that each claims."""
