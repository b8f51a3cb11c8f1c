"""The stash: typed collections over a log, with transactions, fencing, time travel and feeds."""
