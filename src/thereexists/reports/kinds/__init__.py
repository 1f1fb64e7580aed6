"""One file for each kind of artefact: its ``KIND`` is found by being here (see ``artefact.py``)."""
