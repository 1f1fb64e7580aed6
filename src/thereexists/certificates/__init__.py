"""What was promised about a network file, and how it is checked. Nothing in here imports the constructions."""

from thereexists.certificates.certificate import Certificate, load_certificate
from thereexists.certificates.certify_function import predict
from thereexists.certificates.check import Check
from thereexists.certificates.verify import verify

__all__ = ["Certificate", "Check", "load_certificate", "predict", "verify"]
