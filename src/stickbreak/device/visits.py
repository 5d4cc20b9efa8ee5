"""The executor that sends visits to a device."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Any, Self, TypeVar

import numpy as np

from ..data import ArraySource, Chunk, SparseSource
from ..inference.executor import Sum, Threads
from ..inference.survey import SurveyTask
from ..inference.visit import Piece, Visit, VisitTask
from ..likelihoods import Likelihood
from ..model import Kind, RowKind
from ..model.bags import BagKind
from ..model.documents import DocumentKind
from ..model.sequences import SequenceKind
from .chains import DeviceSequences
from .devices import Device
from .documents import DeviceBags
from .rows import DeviceRows, ReturnedRows
from .staging import Lane, lane_of

Source = TypeVar("Source")
Item = TypeVar("Item")
Result = TypeVar("Result")


@dataclass(frozen=True)
class Reading:
    """A source whose chunks are read as its kind holds them on a device."""

    source: Any
    kind: Any
    lane: Lane

    def read(self, chunk: Chunk) -> tuple[Any, Any]:
        """A chunk and its weights, on the device."""
        found: tuple[Any, Any] = self.kind.read(self.source, chunk, self.lane)
        return found

    def answers(self, chunk: Chunk) -> Any:
        """What the documents of a chunk answer, which stays here."""
        return self.source.answers(chunk)


@dataclass(frozen=True)
class DeviceVisit:
    """The visit of a block whose kind computes on a device: a value that names the device and holds nothing of it."""

    task: VisitTask
    device: Device

    def __call__(self, source: ArraySource, piece: Piece) -> Visit:
        """Summary, proposals and rows drawn of a block of the source."""
        with lane_of(self.device) as lane:
            reading: Any = Reading(source, self.task.kind, lane)
            return self.task(reading, piece)


@dataclass
class OnDevice:
    """Visits are computed on a device, in blocks of several chunks; all other tasks run on threads.

    The threads also read and copy the blocks: while one waits for the device, another fills the next block.
    """

    device: Device
    inner: Threads
    looks_near: bool = False  # all clusters at once are a product of matrices

    def __enter__(self) -> Self:
        self.inner.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.inner.__exit__(kind, value, trace)

    def map(self, task: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
        """``task(item)`` for each item, in order."""
        return self.inner.map(task, items)

    def over(self, source: Source, task: Callable[[Source, Item], Result], items: Iterable[Item]) -> Iterator[Result]:
        """``task(source, item)`` for each item, in order."""
        return self.inner.over(source, task, items)

    def total(self, source: Source, task: Callable[[Source, Item], Sum], items: Iterable[Item]) -> Sum:
        """The sum of ``task(source, item)`` over the items, in an order that depends on the items and the source alone."""
        if isinstance(task, VisitTask):
            kind = kind_on(self.device, task.kind, task.likelihood, source)
            if kind is not None:
                self.device.check()
                pieces: Any = items
                blocks: Any = joined(list(pieces), kind.block_rows(task.likelihood, task.prepared))
                visit: Any = DeviceVisit(replace(task, kind=kind), self.device)
                found: Sum = self.inner.total(source, visit, blocks)
                return found
        if isinstance(task, SurveyTask):
            kind = returning_kind(self.device, task.model.kind, task.model.likelihood, source)
            surveyed: Any = replace(task, model=replace(task.model, kind=kind))
            whole: Sum = self.inner.total(source, surveyed, items)
            return whole
        return self.inner.total(source, task, items)


def kind_on(device: Device, kind: Kind, likelihood: Likelihood, source: Any) -> Any:
    """The kind that computes on a device what another computes on processors; None where that is left to these."""
    if refusal(kind, likelihood, isinstance(source, SparseSource)) is not None:
        return None
    if type(kind) is RowKind:
        return DeviceRows(kind.most_kept, kind.candidates, device=device)
    if type(kind) is SequenceKind:
        return DeviceSequences(device=device)
    return DeviceBags(device=device) if type(kind) is BagKind else None


def returning_kind(device: Device, kind: Kind, likelihood: Likelihood, source: Any) -> Kind:
    """The same for rows whose responsibilities are wanted here; the kind itself where that is left to processors."""
    found = kind_on(device, kind, likelihood, source)
    if not isinstance(found, DeviceRows):
        return kind
    device.check()
    return ReturnedRows(found.most_kept, found.candidates, device=device)


def refusal(kind: Kind, likelihood: Likelihood, sparse: bool) -> str | None:
    """Why data of a kind and a likelihood cannot be visited on a device, and what to do; None if they can."""
    if isinstance(kind, DocumentKind):
        return _refused_documents(kind)
    name = type(likelihood).__name__
    if likelihood.cells is not None:
        return f"{name} has missing values, which devices do not fill in; leave out device=, or use DiagonalGaussian()."
    if likelihood.latent is not None:
        return f"{name} has a latent variable for each row, which devices do not compute; leave out device=, or use Gaussian()."
    if not likelihood.portable:
        return f"the features of {name} are computed on processors alone; leave out device=."
    if sparse:
        return "sparse rows are visited on processors alone; leave out device=, or pass X.toarray()."
    return None


def _refused_documents(kind: DocumentKind) -> str | None:
    if type(kind) is not BagKind:
        return "groups of rows, and documents with answers, are visited on processors alone; leave out device=."
    if kind.restarts > 0 or kind.most_kept is not None:
        return "restarts and most_kept are for processors alone; leave out device=, or these."
    return None


def joined(pieces: Sequence[Piece], rows: int) -> list[Piece]:
    """Pieces that follow each other as larger ones, of at most so many rows, or those of one."""
    blocks: list[list[Piece]] = []
    for piece in pieces:
        last = blocks[-1] if blocks else []
        follows = bool(last) and last[-1].chunk.stop == piece.chunk.start
        if follows and piece.chunk.stop - last[0].chunk.start <= rows:
            last.append(piece)
        else:
            blocks.append([piece])
    return [_as_one(block) for block in blocks]


def _as_one(pieces: Sequence[Piece]) -> Piece:
    starts = [piece.start for piece in pieces if piece.start is not None]
    start = np.concatenate(starts, axis=-1) if len(starts) == len(pieces) else None
    return Piece(Chunk(pieces[0].chunk.start, pieces[-1].chunk.stop), start)
