"""The agent's end of the stream to the host."""

import os
from typing import List, Optional, Tuple

from harness.agent.protocol import Decoder, Message, encode


class Host:
    """The stream to the host, on descriptors that no native library writes to."""

    def __init__(self, inward: int, outward: int) -> None:
        self.inward = inward
        self.outward = outward
        self._decoder = Decoder()
        self._frames: List[Tuple[Message, bytes]] = []

    def send(self, message: Message, body: bytes = b"") -> None:
        """Write one frame; a host that has gone ends this process."""
        self.relay(encode(message, body))

    def relay(self, data: bytes) -> None:
        """Write bytes that are frames already."""
        view = memoryview(data)
        while view:
            try:
                view = view[os.write(self.outward, view) :]
            except BrokenPipeError:
                os._exit(0)

    def next_frame(self) -> Optional[Tuple[Message, bytes]]:
        """Return the next frame, or None when the host has closed the stream."""
        while not self._frames:
            data = os.read(self.inward, 1 << 16)
            if not data:
                return None
            self._frames.extend(self._decoder.feed(data))
        return self._frames.pop(0)
