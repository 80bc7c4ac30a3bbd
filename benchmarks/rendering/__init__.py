"""Results as Markdown and as a figure."""
