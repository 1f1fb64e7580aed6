"""What was promised about a network file, and how it is checked. Nothing in here imports the constructions."""

from thereexists.certificates.certificate import Certificate, load_certificate
from thereexists.certificates.certify import certify, predict
from thereexists.certificates.verify import Check, verify

__all__ = ["Certificate", "Check", "certify", "load_certificate", "predict", "verify"]
