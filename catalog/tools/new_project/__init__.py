"""`catalog new`: `scaffold` writes a project from the files in `template/`."""
