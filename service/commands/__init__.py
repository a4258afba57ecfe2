"""The service's commands of the command line."""
