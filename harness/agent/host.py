"""The agent's end of the stream to the host."""

import os
from typing import List, Optional

from harness.agent.protocol import NO_JOB, Decoder, Frame, Message, encode, packed


class Host:
    """The stream to the host, on descriptors that no native library writes to; `job` is the id of the job in hand."""

    def __init__(self, inward: int, outward: int) -> None:
        self.inward = inward
        self.outward = outward
        self.job = NO_JOB
        self._decoder = Decoder()
        self._frames: List[Frame] = []

    def send(self, message: Message) -> None:
        """Write one frame; a host that has gone ends this process."""
        self._write(encode(message, b"", self.job))

    def pass_on(self, frame: Frame) -> None:
        """Write a child's frame as it came."""
        self._write(packed(frame))

    def _write(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            try:
                view = view[os.write(self.outward, view) :]
            except BrokenPipeError:
                os._exit(0)

    def next_frame(self) -> Optional[Frame]:
        """Return the next frame, or None when the host has closed the stream."""
        while not self._frames:
            data = os.read(self.inward, 1 << 16)
            if not data:
                return None
            self._frames.extend(self._decoder.feed(data))
        return self._frames.pop(0)
