"""Other libraries, with deixis as a part of them."""
