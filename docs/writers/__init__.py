"""What is generated of the documentation: each module makes pages from what the code is, and writes nothing."""
