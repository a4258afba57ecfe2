"""Mail: a message to features, training from mailboxes, watching an IMAP account. The commands are in `mail_cli`."""

from .extract import features
from .message import Message, read

__all__ = ["Message", "features", "read"]
