"""What a record amounts to: class, cause, verdict; pure functions of records."""
