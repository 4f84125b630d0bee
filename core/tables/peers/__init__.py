"""How ranks meet in their collectives: who came last and how long the others waited (`skew`), how much was
moved and how quickly (`messages`).

Devices, ranks and findings ask here, so that all of them name the same rank. Below stand the rooms host,
steps and frame.
"""
