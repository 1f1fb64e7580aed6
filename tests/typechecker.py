"""What the shape annotations are checked with: beartype, where an int may stand for a float as everywhere in Python."""

from beartype import BeartypeConf, beartype

check = beartype(conf=BeartypeConf(is_pep484_tower=True))
