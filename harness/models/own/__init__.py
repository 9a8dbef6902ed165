"""A user's own models: as variants that no case file describes, with the data and the shapes that the user gives."""
