from .findings import Change as Change
from .monitor import Monitor as Monitor
