"""The fixture `tools` for all tests of this folder."""

from tests.accounting.ptx_texts import tools

__all__ = ["tools"]
