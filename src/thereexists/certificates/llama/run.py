"""The folder, run by ``transformers`` as anyone would: its own ``LlamaForCausalLM``, without progress bars."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from thereexists.core.dtypes import as_dtype


def loaded(folder: Path, dtype: str) -> Any:
    """``AutoModelForCausalLM.from_pretrained``, offline; ``ImportError`` where transformers is not installed."""
    from transformers import AutoModelForCausalLM
    from transformers.utils import logging

    shown = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        return AutoModelForCausalLM.from_pretrained(folder, local_files_only=True, dtype=as_dtype(dtype)).eval()
    finally:
        if shown:
            logging.enable_progress_bar()
