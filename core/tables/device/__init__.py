"""What devices did, moment by moment and kernel by kernel, and what they could have done.

`device_state` tells each moment of a device (`states`: computing, copying, waiting, idle), `breakdown`,
`idle` and `gap` sum and explain it; `kernels` and `launches` are the work and the calls that launched it;
`memory` the peaks of allocators; `efficiency` and `aiu_cycles` what was achieved of what a device can;
`untrusted` which of these times cannot be trusted, and why, `doubts` what is said of them.

Below stand the rooms peers, host, steps and frame.
"""
