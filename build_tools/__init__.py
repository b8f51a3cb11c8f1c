"""The build gate: freezes the types of every version and refuses what would break a store.

Works on a project's files only and never imports the project. Inside the wheel it is `catalog._gate`, so every
import in here is relative.
"""
