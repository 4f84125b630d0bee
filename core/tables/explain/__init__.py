"""Answers in sentences: a name explained in one line, what costs most and can be trusted, two runs held
against each other.

`questions` are those that can be asked by name, `explain` explains names and says what costs most,
`pair_answers` answers for two runs shown as one trace.

Below stand findings and doctor, and the room compare.
"""
