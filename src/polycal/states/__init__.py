"""Additive states: what an audit needs to remember of rows it has seen. They stream, merge, save and resume."""
