"""Pages for a browser: one file each, which asks nobody for anything and runs no script. Prints nothing."""
