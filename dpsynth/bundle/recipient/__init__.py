"""The recipient's side: a published bundle opened, verified, asked and extended, by its public folder."""

from dpsynth.bundle.manifest import BundleRefused
from dpsynth.bundle.recipient.bundle import Bundle, open_bundle

__all__ = ["Bundle", "BundleRefused", "open_bundle"]
