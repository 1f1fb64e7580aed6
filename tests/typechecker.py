"""What the shape annotations are checked with: beartype, where an int may stand for a float as everywhere in Python."""

from beartype import BeartypeConf, beartype

check = beartype(conf=BeartypeConf(is_pep484_tower=True))

# Where arrays have shapes in their annotations (tests/whole/test_house.py compares). The plain types of the other
# packages are checked before the suite, by basedpyright, and checking them on every call would double its time.
SHAPED = ("attention", "evaluate", "experiments", "heads", "mixers", "model")
