"""``python without_builders.py FOLDER [MODULE]``: verify a folder where importing anything that builds raises.

With MODULE, the verifier first imports that one: what a verifier that leans on its builder would do.
"""

import sys
from importlib import import_module
from importlib.abc import MetaPathFinder

BUILDERS = ("thereexists.constructions", "thereexists.program", "thereexists.exports")


class Blocked(MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if any(name == builder or name.startswith(f"{builder}.") for builder in BUILDERS):
            raise ImportError(f"{name} builds; a verifier must not need it")
        return None


if __name__ == "__main__":
    sys.meta_path.insert(0, Blocked())
    folder, *planted = sys.argv[1:]
    certificates = import_module("thereexists.certificates")
    if planted:  # as if the first line of the verifier's own file imported it
        check = certificates.verify

        def verify_with_a_builder(folder):
            import_module(planted[0])
            return check(folder)

        certificates.verify = verify_with_a_builder
    verdict = certificates.verify(folder)
    assert not [m for m in sys.modules if any(m == b or m.startswith(f"{b}.") for b in BUILDERS)]
    print(verdict.reasons)
    sys.exit(0 if verdict.holds else 1)
