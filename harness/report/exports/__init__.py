"""The report in other people's formats: Markdown, JUnit, badges, CSV."""
