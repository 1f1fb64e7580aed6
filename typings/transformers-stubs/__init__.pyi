# In place of transformers/__init__.py alone, for basedpyright: that file imports every model, 2,400 files that nobody
# here uses and that took a sixth of every check. Our own imports name the files (a rule in tests/whole/test_house.py).
__version__: str
