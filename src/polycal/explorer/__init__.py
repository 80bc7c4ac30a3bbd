"""A local page to put questions to predictions: state and answers, a guarded web application, a server."""
