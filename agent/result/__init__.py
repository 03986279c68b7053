"""What a run led to, as report/result.json."""
