"""Import and export: sends a file of events as feedback, each line once; writes a learner's log to a file."""
