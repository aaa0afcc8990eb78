"""`python -m deixis.cli`."""

from deixis.cli import main

main()
