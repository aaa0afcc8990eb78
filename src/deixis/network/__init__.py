"""The network: text in, states and decisions out."""
