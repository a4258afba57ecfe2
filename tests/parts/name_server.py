"""A name server on loopback whose names change: A records over UDP (RFC 1035), without a life of their own."""

from __future__ import annotations

import socket
import struct
import threading

from ports import free_port

A, IN, NAME_ERROR = 1, 1, 3


class NameServer:
    """Answers from `names`, which may change at any time; a name that is not there does not exist."""

    def __init__(self, names: dict[str, str], address: str = "127.0.0.1", port: int | None = None) -> None:
        self.names = names
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.bind((address, free_port() if port is None else port))
        self.address = "{}:{}".format(*self._socket.getsockname())
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            try:
                query, client = self._socket.recvfrom(512)
            except OSError:
                return
            if query:
                self._socket.sendto(self.answer(query), client)

    def answer(self, query: bytes) -> bytes:
        labels, place = [], 12
        while length := query[place]:
            labels.append(query[place + 1 : place + 1 + length].decode().lower())
            place += 1 + length
        question = query[12 : place + 5]
        kind = struct.unpack("!H", query[place + 1 : place + 3])[0]
        address = self.names.get(".".join(labels))
        records = 1 if address and kind == A else 0
        flags = 0x8180 | (0 if address else NAME_ERROR)
        head = query[:2] + struct.pack("!5H", flags, 1, records, 0, 0)
        if not records or address is None:
            return head + question
        return head + question + struct.pack("!3HIH", 0xC00C, A, IN, 1, 4) + socket.inet_aton(address)

    def stop(self) -> None:
        self._socket.close()
