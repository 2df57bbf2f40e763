"""A DNS server for one name, whose addresses a test changes while it runs."""

from __future__ import annotations

import asyncio
import struct


class OneNameDns(asyncio.DatagramProtocol):
    """Answers every A question with ``addresses`` (TTL 0) and anything else with nothing."""

    def __init__(self, addresses: list[str]) -> None:
        self.addresses = addresses
        self._transport: asyncio.DatagramTransport | None = None

    async def start(self) -> int:
        """Serve on loopback; returns the port."""
        loop = asyncio.get_running_loop()
        transport, _ = await loop.create_datagram_endpoint(
            lambda: self, local_addr=("127.0.0.1", 0)
        )
        self._transport = transport
        port: int = transport.get_extra_info("sockname")[1]
        return port

    def stop(self) -> None:
        """Stop serving."""
        if self._transport:
            self._transport.close()

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        """Answer one question."""
        assert self._transport is not None
        end = data.index(b"\0", 12) + 5
        question = data[12:end]
        kind = struct.unpack("!H", question[-4:-2])[0]
        addresses = self.addresses if kind == 1 else []
        header = data[:2] + struct.pack("!HHHHH", 0x8180, 1, len(addresses), 0, 0)
        answers = b"".join(
            b"\xc0\x0c" + struct.pack("!HHIH", 1, 1, 0, 4) + bytes(map(int, address.split(".")))
            for address in addresses
        )
        self._transport.sendto(header + question + answers, addr)
