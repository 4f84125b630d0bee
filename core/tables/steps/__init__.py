"""Where the time of each step went: a table of the steps, their lengths, the work that belongs to each.

Which slices are the steps is told by the trace (core/trace/step_choice.py). `attribution` says to which step
device work belongs, `step_length` how long a step is where the host runs ahead of the device, `step_sets` in
which times host and device are busy, by TensorBoard's roles.

Below stands the room frame.
"""
