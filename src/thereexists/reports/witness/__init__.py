"""The page of a witness, one file for each kind (``core/kinds.py``)."""
