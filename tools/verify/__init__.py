"""Recomputes for the audit: file digests, scores with jiwer, intervals from stored rows."""

from __future__ import annotations

from tools.verify.intervals import recompute_interval
from tools.verify.scores import file_sha256, recompute_scores

__all__ = ["file_sha256", "recompute_interval", "recompute_scores"]
