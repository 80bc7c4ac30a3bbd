"""One audit, wherever the rows are: a source of rows, three passes over them, findings, pictures, the result."""
