"""Histories in and out: files of events become feedback, each line once; a learner's log becomes a file."""
