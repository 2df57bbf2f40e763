"""Counts and notes of an import. Memory stays bounded however large the archive is."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from services.ingest.import_parts import LeftOut
from services.ingest.records import IncomingMessage, Skipped, SkipReason
from services.ingest.versions import Fate

DELETED_BEFORE = "deleted_before"
# Beyond these the report counts instead of naming.
MAX_UNKNOWN_AUTHORS = 10_000
MAX_FILES_NAMED = 20
MAX_FAULTS_NAMED = 5
_DAY_FILE = re.compile(r"(?:.*/)?\d{4}-\d{2}-\d{2}\.json")


@dataclass(frozen=True)
class Report:
    """What an import did."""

    workspace_id: str
    generation_id: str
    generation_created: bool
    tally: Tally
    empty_channels: Sequence[str]
    notes: Sequence[str]
    chunks_without_vector: int


@dataclass
class Tally:
    """Totals since the import began.

    Every record received is in exactly one of the others: imported, unchanged, updated, deleted,
    or skipped under its reason.
    """

    received: int = 0
    imported: int = 0
    unchanged: int = 0
    updated: int = 0
    deleted: int = 0
    skipped: Counter[str] = field(default_factory=Counter)
    chunks_written: int = 0
    unknown_authors: set[str] = field(default_factory=set)
    files_gone: int = 0
    nul_records: int = 0
    entries_unreadable: int = 0
    private_folders: list[str] = field(default_factory=list)
    undated_files: set[str] = field(default_factory=set)
    _faults: list[str] = field(default_factory=list)
    _files: list[LeftOut] = field(default_factory=list)
    _files_left_out: int = 0

    def add_fates(self, fates: Iterable[Fate]) -> None:
        """Count what became of messages."""
        counts = Counter(fates)
        self.imported += counts[Fate.IMPORTED]
        self.updated += counts[Fate.UPDATED]
        self.unchanged += counts[Fate.UNCHANGED]
        if counts[Fate.DELETED_BEFORE]:
            self.skipped[DELETED_BEFORE] += counts[Fate.DELETED_BEFORE]

    def add_deletions(self, told: int, new: int) -> None:
        """Count deletions; those that were known already are skipped records."""
        self.deleted += new
        if told > new:
            self.skipped[DELETED_BEFORE] += told - new

    def add_skipped(self, skipped: Skipped, file_name: str) -> None:
        """Count a record that is not indexed; the first faults are named in the notes."""
        self.skipped[skipped.reason] += 1
        is_fault = skipped.reason in (
            SkipReason.NOT_JSON,
            SkipReason.BAD_TIMESTAMP,
            SkipReason.MISSING_FIELD,
        )
        if is_fault and skipped.detail and len(self._faults) < MAX_FAULTS_NAMED:
            self._faults.append(f"{file_name}: {skipped.detail}.")

    def add_message(self, message: IncomingMessage) -> None:
        """Note what is odd about a message."""
        self.files_gone += message.file_stubs
        is_unknown = bool(message.author_id) and not message.author_name
        if is_unknown and len(self.unknown_authors) < MAX_UNKNOWN_AUTHORS:
            self.unknown_authors.add(message.author_id)

    def add_file(self, file_name: str) -> None:
        """Note a file of a channel's folder that is not named after a day."""
        if not _DAY_FILE.fullmatch(file_name) and len(self.undated_files) < MAX_FILES_NAMED:
            self.undated_files.add(file_name)

    def add_left_out(self, file: LeftOut) -> None:
        """Note a file of the archive that was not used."""
        self._files_left_out += 1
        if len(self._files) < MAX_FILES_NAMED:
            self._files.append(file)

    def notes(self) -> list[str]:
        """What a person should know, a sentence each."""
        return [
            *(f"{file.file_name} was left out: {file.reason}" for file in self._files),
            *self._counted_notes(),
            *(
                f"{name} is not named after a day; its records were read all the same."
                for name in sorted(self.undated_files)
            ),
            *(f"Left out a record of {fault}" for fault in self._faults),
        ]

    def _counted_notes(self) -> list[str]:
        unnamed = self._files_left_out - len(self._files)
        folders = ", ".join(self.private_folders[:MAX_FILES_NAMED])
        counted = (
            (unnamed, f"{unnamed} more files were left out."),
            (
                len(self.private_folders),
                f"No directory file lists {folders}: imported as private, since nobody can tell "
                "who may read them. List them in channels.json and import again, or name them "
                "in --reader-channels.",
            ),
            (self.nul_records, f"NUL characters were removed from {self.nul_records} records."),
            (
                self.files_gone,
                f"{self.files_gone} files are gone from the archive; their messages were kept.",
            ),
            (
                self.entries_unreadable,
                f"{self.entries_unreadable} entries of directory files have no id; left out.",
            ),
        )
        return [note for count, note in counted if count]
