"""Results as text for people, one module per command under the command's name; loaded for text output only.

The modules return renderables, and `catalog.cli.screen` prints them. `formats` has numbers, sizes and times, `table`
the tables, `progress` the progress bars, `console` the console of rich.
"""
