"""awp-lint: find, price, prove and patch the lines of PyTorch inference code that waste the accelerator.

The import names mirror the folders of the repository: ``detector/x.py`` is ``awp_lint.detector.x``.
"""

__version__ = "0.1.0"
