"""The one answer to "what is known of this cell": measured, else reported, else nothing."""
