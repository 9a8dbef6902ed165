"""A YAML file held against its JSON Schema: what is wrong is one sentence with file, line, field and what to do."""

from harness.document.check import Form, checked
from harness.document.reader import Document, Place, Problem

__all__ = ["Document", "Form", "Place", "Problem", "checked"]
