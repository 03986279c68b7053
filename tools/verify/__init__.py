"""Recomputes for the audit: file digests, scores with jiwer, intervals from stored rows."""

from __future__ import annotations

from tools.files import file_sha256
from tools.verify.intervals import recompute_interval
from tools.verify.scores import recompute_scores

__all__ = ["file_sha256", "recompute_interval", "recompute_scores"]
