"""The report: `results.json`, its exports, and the one-file page `index.html`."""
