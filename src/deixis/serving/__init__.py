"""The server: the public endpoints over one model, and the page that plays the inference."""
