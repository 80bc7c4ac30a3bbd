"""Pictures as Vega-Lite specifications: plain dictionaries, one file per kind, for the report and the explorer."""
