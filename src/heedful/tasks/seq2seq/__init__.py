"""Text in, text out: translation, summarization, dialogue, transduction."""
