"""Devices by name, and what they need of the library whose arrays they hold."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from ..data.arrays import is_tensor

EXTRA = "needs {} and array-api-compat: pip install {}."
BLOCK_BYTES = 1 << 28  # of a block, where the memory of a device is not known
SHARE = 0.2  # of the free memory of a card, for the block of each of its lanes; twice as much is for data that stay


class Library(NamedTuple):
    """A library of arrays: modules, of which the last has its functions, packages, and how its arrays become NumPy's."""

    modules: tuple[str, ...]
    package: str
    to_host: Callable[[Any], NDArray[Any]]


def _of_torch(values: Any) -> NDArray[Any]:
    found: NDArray[Any] = values.detach().cpu().numpy()
    return found


def _of_cupy(values: Any) -> NDArray[Any]:
    found: NDArray[Any] = values.get()
    return found


LIBRARIES = {
    "torch": Library(("array_api_compat.torch",), '"stickbreak[gpu]"', _of_torch),
    "cupy": Library(("array_api_compat.cupy",), "array-api-compat cupy-cuda12x", _of_cupy),
    "numpy": Library(("numpy",), "numpy", np.asarray),
    "array_api_strict": Library(
        ("array_api_compat", "array_api_strict"), "array-api-compat array-api-strict", np.asarray
    ),
}


@dataclass(frozen=True)
class Device:
    """A device by name: a value that can be pickled and holds no memory of the device.

    library : a key of `LIBRARIES`;  name : what the library calls the device, such as "cuda:0"
    """

    library: str
    name: str

    @classmethod
    def parse(cls, given: str) -> Self:
        """The device that a user names: "cuda", "cuda:1" or "cpu" of torch, "cupy" or "cupy:1"; or, to try what
        a device does on processors, "numpy" or "array_api_strict".

        Raises
        ------
        ValueError
            For another name.
        """
        kind, _, number = given.partition(":")
        numbered = number.isdecimal() and len(number) < 4
        if kind in ("cuda", "cupy") and (numbered or given == kind):
            return cls("torch" if kind == "cuda" else kind, f"cuda:{int(number or 0)}")
        if given in ("cpu", "numpy", "array_api_strict"):
            return cls("torch" if given == "cpu" else given, "cpu")
        known = '"cuda", "cuda:1", ..., "cupy", "cupy:1", ..., "cpu", "numpy" or "array_api_strict"'
        raise ValueError(f"device must be None or one of {known}; got {given!r}.")

    @property
    def xp(self) -> Any:
        """The functions of the array API.

        Raises
        ------
        ImportError
            If the library is missing, with what to install.
        """
        return _namespace(self.library)

    @property
    def is_card(self) -> bool:
        """Whether its memory is not that of the computer."""
        return self.name != "cpu"

    @property
    def number(self) -> int:
        """Which card it is."""
        return int(self.name.partition(":")[2] or 0)

    def check(self) -> None:
        """Refuse a device that is not there, or is set to compute with fewer digits than float32 has.

        Raises
        ------
        ImportError
            If the library is missing, with what to install.
        RuntimeError
            If there is no such card, or torch is to multiply float32 matrices as TF32 or bfloat16.
        """
        xp = self.xp
        if self.library == "torch":
            if self.is_card and self.number >= (xp.cuda.device_count() if xp.cuda.is_available() else 0):
                raise RuntimeError(
                    f"torch finds no device {self.name!r}; leave out device=, or install torch for CUDA."
                )
            if xp.get_float32_matmul_precision() != "highest" or xp.backends.cuda.matmul.allow_tf32:
                raise RuntimeError(
                    "torch is set to multiply float32 matrices with fewer digits than float32 has, which moves the bound: "
                    'call torch.set_float32_matmul_precision("highest").'
                )

    def array(self, values: NDArray[Any] | float, dtype: Any = None) -> Any:
        """NumPy values as an array of the device, of the same type or of ``dtype``; small ones, which are copied."""
        kind = np.array(values, dtype)
        if self.library == "cupy":
            with self.xp.cuda.Device(self.number):
                return self.xp.asarray(kind)
        return self.xp.asarray(kind, device=self._place)

    def empty(self, shape: tuple[int, ...], dtype: Any) -> Any:
        """An array of the device that holds anything."""
        kind = getattr(self.xp, np.dtype(dtype).name)
        if self.library == "cupy":
            with self.xp.cuda.Device(self.number):
                return self.xp.empty(shape, dtype=kind)
        return self.xp.empty(shape, dtype=kind, device=self._place)

    def host(self, values: Any) -> NDArray[Any]:
        """An array of the device as one of NumPy."""
        return np.asarray(LIBRARIES[self.library].to_host(values))

    @property
    def block_bytes(self) -> int:
        """Bytes for what is computed with a block of rows in each lane."""
        return _block_bytes(self)

    @property
    def _place(self) -> Any:
        return self.xp.Device("CPU_DEVICE") if self.library == "array_api_strict" else self.name


@lru_cache
def _namespace(library: str) -> Any:
    known = LIBRARIES[library]
    try:
        return [import_module(module) for module in known.modules][-1]
    except ImportError as error:
        raise ImportError("device= " + EXTRA.format(library, known.package)) from error


@lru_cache
def _block_bytes(device: Device) -> int:
    """A power of two, once in a process, so that the sizes of blocks, and with them the bits of sums, seldom change."""
    if not device.is_card:
        return BLOCK_BYTES
    with device.xp.cuda.device(device.number) if device.library == "torch" else device.xp.cuda.Device(device.number):
        cuda = device.xp.cuda
        free = (cuda.mem_get_info() if device.library == "torch" else cuda.runtime.memGetInfo())[0]
    return 1 << max(20, int(SHARE * free).bit_length() - 1)


def device_of(given: Any, X: Any = None) -> Device | None:
    """Where X is to be fitted: what is given, or the card that X is on already; None: on the processors of this computer.

    Raises
    ------
    ValueError
        If what is given is no name of a device.
    """
    if given is not None:
        if not isinstance(given, str):
            raise ValueError(f'device must be None or a name such as "cuda"; got {given!r}.')
        return Device.parse(given)
    place = tensor_place(X)
    return None if place is None or not place.startswith("cuda") else Device("torch", _numbered(place))


def tensor_place(X: Any) -> str | None:
    """The name of the device of a tensor of torch, or of the first of a list of tensors; None for anything else."""
    if isinstance(X, (list, tuple)) and X:
        return tensor_place(X[0])
    return str(X.device) if is_tensor(X) else None


def _numbered(place: str) -> str:
    return place if ":" in place else f"{place}:0"
