"""The course's own commands: set-up, build, summary, servers. The Makefile calls them."""
