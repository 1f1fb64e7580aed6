"""What a witness is, whatever it was built from: a network, its plan, its certificate, and how to watch it."""
