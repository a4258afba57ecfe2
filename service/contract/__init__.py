"""The formats of requests, events, replies, names, ids and limits, each validated in one place only."""
