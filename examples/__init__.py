"""Programs that show the catalog at work."""
