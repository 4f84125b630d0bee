"""Findings about a program: rules with thresholds, evidence to jump to, and the time that each claims.

`facts` gathers what rules ask of a source, a rule is a decorated function (`rule`) in a file of its subject,
`judge` lets them speak and settles who claims which time, `finding` and `forms` are what they say and how it
is printed, `leading` is the one to read first.

Below stand the rooms compare, compile, path, device, peers, host, steps and frame.
"""
