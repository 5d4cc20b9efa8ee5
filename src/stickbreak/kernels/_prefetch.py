"""Asking the processor for a number of a table in advance, where work that cannot be foreseen would wait for it.

It is made of parts of numba that another release may use in another way: then nothing is asked for, and results are the same.
"""

from typing import Any

import numba
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic, overload

from ._jit import part as _part

_KNOWN = (0, 62), (0, 68)  # the first and the last release of numba with these parts
_READ, _KEEP, _DATA = 0, 3, 1  # arguments of `llvm.prefetch`


def _prefetch(table, row, column):
    """Ask for a number of a table; without compilation, nothing is done."""


def _intrinsic(context, table, row, column):
    def generate(target, builder, signature, arguments):
        kind = signature.args[0]
        array = target.make_array(kind)(target, builder, arguments[0])
        place = cgutils.get_item_pointer(target, builder, kind, array, list(arguments[1:]), wraparound=False)
        pointer = ir.IntType(8).as_pointer()
        number = ir.IntType(32)
        takes = ir.FunctionType(ir.VoidType(), [pointer, number, number, number])
        function = builder.module.declare_intrinsic("llvm.prefetch", [pointer], takes)
        flags = [ir.Constant(number, flag) for flag in (_READ, _KEEP, _DATA)]
        builder.call(function, [builder.bitcast(place, pointer), *flags])
        return target.get_dummy_value()

    return types.void(table, types.intp, types.intp), generate


_ask: Any = intrinsic(_intrinsic)


def _asks(table, row, column):
    _ask(table, row, column)


def _passes(table, row, column):
    pass


@overload(_prefetch)
def _compiled(table, row, column):
    return _asks if _KNOWN[0] <= numba.version_info.short <= _KNOWN[1] else _passes


@_part
def prefetch(table, row, columns):
    """Ask for some columns of a row of a table (n, m): they come into the cache while other work is done."""
    for column in columns:
        _prefetch(table, row, column)
