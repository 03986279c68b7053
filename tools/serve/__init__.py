"""`rehear serve`: a local policy behind the OpenAI contract as vLLM speaks it for audio models."""
