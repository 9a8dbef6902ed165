"""The report in other people's formats: Markdown, CSV."""
