"""Finished chunks of a long certification, kept on disk so that an interrupted run goes on where it stopped."""

from __future__ import annotations

import json
import os
from pathlib import Path

FILE = ".certificate.part.json"


class Ledger:
    """Sums per chunk, keyed by the chunk's first cube; valid only for one ``job`` (a digest of all it depends on)."""

    def __init__(self, folder: Path | None, job: str):
        self.file = None if folder is None else folder / FILE
        self.job = job
        self.chunks: dict[str, list[float]] = {}
        if self.file is not None and self.file.is_file():
            try:
                stored = json.loads(self.file.read_text(encoding="utf-8"))
                if stored["job"] == job:
                    self.chunks = stored["chunks"]
            except (ValueError, KeyError, TypeError):
                pass  # a broken ledger is no ledger: the work is simply done again

    def get(self, start: int) -> list[float] | None:
        return self.chunks.get(str(start))

    def put(self, start: int, sums: list[float]) -> None:
        self.chunks[str(start)] = sums
        if self.file is not None:
            beside = self.file.with_name(f"{FILE}.new")
            beside.write_text(json.dumps({"job": self.job, "chunks": self.chunks}), encoding="utf-8")
            os.replace(beside, self.file)

    def close(self) -> None:
        if self.file is not None:
            self.file.unlink(missing_ok=True)
