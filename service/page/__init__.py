"""The page to watch learners learn: static files, and the one route that serves them."""
