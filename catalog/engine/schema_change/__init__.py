"""Tables of an environment, whose types are data, and the changes of their schemas while they are written."""
