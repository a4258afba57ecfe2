"""What a request, an event, a reply, a name, an id and a limit are: one reading of each, used by everyone."""
