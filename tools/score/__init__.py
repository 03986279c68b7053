"""Scoring of transcripts and labels, and the paired comparison of two systems."""

from __future__ import annotations

from tools.score.compare import Comparison, compare_rows
from tools.score.transcripts import Totals, TranscriptScore, score_by, score_pairs, score_rows, word_totals

__all__ = [
    "Comparison", "Totals", "TranscriptScore", "compare_rows", "score_by", "score_pairs", "score_rows", "word_totals",
]  # fmt: skip
