"""Compilation of kernels, and of parts that are always inlined: no machine code of their own, optimised in their callers alone.

It is made of parts of numba that another release may not have, or may use in another way: then the import of this file fails.
"""

import numba
from llvmlite.binding import Linkage
from numba.core.codegen import CPUCodegen, JITCodeLibrary
from numba.core.compiler import CompilerBase, DefaultPassBuilder

_KNOWN = (0, 62), (0, 68)  # the first and the last release of numba that compiles so

if not _KNOWN[0] <= numba.version_info.short <= _KNOWN[1]:
    raise ImportError(f"numba {numba.__version__} may compile in another way.")

_NEEDED = (
    CPUCodegen._module_pass_manager,
    JITCodeLibrary._ensure_finalized,
    JITCodeLibrary._finalize_dynamic_globals,
    JITCodeLibrary._finalize_final_module,
    JITCodeLibrary._get_module_for_linking,
    JITCodeLibrary._optimize_final_module,
)


class _Nowhere:
    """In place of a code generator: where there is no machine code, nothing in it is to be set."""

    def set_env(self, name, environment):
        pass


class _Inlined(JITCodeLibrary):
    """The code of one function, which others take in."""

    @property
    def codegen(self):
        return _Nowhere()

    def get_pointer_to_function(self, name):
        self._ensure_finalized()
        return 0

    def _optimize_final_module(self):
        options = {"loop_vectorize": False, "slp_vectorize": False, "opt": self._codegen._opt_level}
        passes, builder = self._codegen._module_pass_manager(cost="cheap", **options)
        passes.run(self._final_module, builder)

    def _finalize_final_module(self):
        self._finalize_dynamic_globals()
        self._finalized = True


class InlinedCompiler(CompilerBase):
    """Numba's pipeline of passes, into a library of this kind."""

    def define_pipelines(self):
        codegen = self.state.targetctx.codegen()
        self.state.library = _Inlined(codegen, self.state.func_id.func_qualname)
        return [DefaultPassBuilder.define_nopython_pipeline(self.state)]


class _Kernel(JITCodeLibrary):
    """The code of one kernel, with a copy of all that it calls that no other kernel runs."""

    def _finalize_final_module(self):
        self._finalized = True
        self._get_module_for_linking()  # a copy, in which others find what is called by name
        for function in self._final_module.functions:
            if not function.is_declaration and function.linkage == Linkage.linkonce_odr:
                function.linkage = Linkage.internal
        super()._finalize_final_module()


class KernelCompiler(CompilerBase):
    """Numba's pipeline of passes, into a library of this kind."""

    def define_pipelines(self):
        self.state.library = _Kernel(self.state.targetctx.codegen(), self.state.func_id.func_qualname)
        self.state.library.enable_object_caching()
        return [DefaultPassBuilder.define_nopython_pipeline(self.state)]


class ApartCompiler(InlinedCompiler):
    """The same for functions no two of whose arrays share memory, so that nothing need be checked at run time."""

    def define_pipelines(self):
        self.state.flags.noalias = True
        return super().define_pipelines()
