"""The command line: a file a command, each from options to one call of the library, one renderer and an exit code. ``main`` lists them."""
