"""The one-file page: its data, its panels and its texts; the template, styles and scripts are in static/."""
