"""A YAML file held against its JSON Schema: a fault is one sentence with file, line, field and cure."""

from harness.document.check import Form, checked
from harness.document.reader import Document, Place, Problem

__all__ = ["Document", "Form", "Place", "Problem", "checked"]
