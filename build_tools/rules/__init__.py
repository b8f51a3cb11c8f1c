"""The rules of the gate, one module per thing they look at; each adds its findings to the workspace."""
